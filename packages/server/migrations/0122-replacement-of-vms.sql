-- GPUs that are held for a replacement, to find those whose operation has ended.
CREATE INDEX gpus_held_for_operations ON gpus (held_for) WHERE held_kind = 'operation';

-- The VM that gets the requested GPUs in place of its own. The service makes such a request when a VM with an
-- unhealthy GPU has to be replaced and no GPUs are in stock. The request is the first in its queue.
ALTER TABLE capacity_requests ADD COLUMN replace_vm_id uuid;
CREATE INDEX capacity_requests_replace ON capacity_requests (replace_vm_id, created_at) WHERE replace_vm_id IS NOT NULL;
