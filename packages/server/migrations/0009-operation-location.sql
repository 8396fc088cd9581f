-- Where an operation is done: a worker takes only what its engines can do. '' is done anywhere (firewall rules: each
-- worker brings the VMs of its own locations up to date).
ALTER TABLE operations ADD COLUMN location text NOT NULL DEFAULT '';
UPDATE operations o SET location = v.location FROM vms v WHERE v.id = o.resource_id AND o.state = 'IN_PROGRESS';
UPDATE operations o SET location = d.location FROM disks d WHERE d.id = o.resource_id AND o.state = 'IN_PROGRESS';

-- The claim, and the counts for operators: all that is unfinished, stuck ones included, since they are tried again.
DROP INDEX operations_due;
CREATE INDEX operations_due ON operations (run_at) WHERE state = 'IN_PROGRESS';
-- The claim beside projects that have their share: it steps from project to project over their queues.
CREATE INDEX operations_due_by_project ON operations (project_id, run_at) WHERE state = 'IN_PROGRESS';
