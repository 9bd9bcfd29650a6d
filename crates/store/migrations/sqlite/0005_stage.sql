-- Which of its steps the current attempt is at, by name.
ALTER TABLE jobs ADD COLUMN stage TEXT;
