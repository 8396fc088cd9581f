-- Hosts whose networks are bridges route a range to one of them alone, and Incus puts a bridge on every member of a
-- cluster: a location of such hosts carries each range for one network at a time.

-- This finds out whether a location has such hosts.
CREATE INDEX hosts_with_bridges ON hosts (location) WHERE capabilities ->> 'network' = 'bridge';

CREATE TABLE carried_ranges (
  subnet_id uuid PRIMARY KEY,
  location text NOT NULL REFERENCES locations ON DELETE CASCADE,
  cidr cidr NOT NULL,
  CONSTRAINT carried_ranges_once EXCLUDE USING gist (location WITH =, cidr inet_ops WITH &&)
);
COMMENT ON TABLE carried_ranges IS
  'Subnets that VMs have in locations of bridges. One without VMs stays until somebody else wants its range.';
COMMENT ON COLUMN carried_ranges.subnet_id IS
  'No reference: the subnet may be gone, and whoever removes it waits for nobody who holds this row.';

INSERT INTO carried_ranges (subnet_id, location, cidr)
SELECT s.id, s.location, s.cidr FROM subnets s JOIN locations l ON l.name = s.location AND l.engine = 'incus'
WHERE EXISTS (SELECT FROM vms v WHERE v.subnet_id = s.id)
ON CONFLICT DO NOTHING;
