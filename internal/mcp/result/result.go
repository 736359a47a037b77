package result
