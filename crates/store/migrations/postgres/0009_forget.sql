-- What is old is found by walking along the ids, which are nearly in the order of time: no index of moments
-- has to be written with every job that ends.
DROP INDEX finished_finished;
