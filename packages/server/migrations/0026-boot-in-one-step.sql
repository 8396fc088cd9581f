-- Definition, firewall and power are one engine call: of a creation's or start's steps (admit, define, protect, boot,
-- finish) three became one. What is under way goes on at the step that does the same.
UPDATE operations SET step = CASE WHEN step < 4 THEN 1 ELSE 2 END
WHERE state = 'IN_PROGRESS' AND kind IN ('vm-create', 'vm-start') AND step > 1;
