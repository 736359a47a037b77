-- Columns of a chunk stay in their row, where one read finds them, unless they are larger
-- than a page. Those from before stay where they are.
ALTER TABLE activity_column SET (toast_tuple_target = 8160);
