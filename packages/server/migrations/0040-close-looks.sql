-- A fleet that is too large to be looked at closely each time is looked at in turn: this is the last host of the last look,
-- or '' where the next begins with the first.
ALTER TABLE locations ADD COLUMN looked_up_to text NOT NULL DEFAULT '';
