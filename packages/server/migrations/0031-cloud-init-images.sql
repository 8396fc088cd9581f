-- Images of the simulated fleet and imported cloud images have cloud-init: a tag says so, and #cloud-config is taken.

UPDATE images SET tags = array_append(tags, 'cloud-init')
WHERE NOT 'cloud-init' = ANY (tags)
  AND ('imported' = ANY (tags)
       OR source = '{}' AND name IN ('ubuntu24.04-nvidia:latest', 'ubuntu22.04-nvidia:latest', 'ubuntu24.04:latest', 'debian12:latest'));
