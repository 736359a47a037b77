package clients

// RecordExternalChange stores a change that another program made since the file was read, so that it can be undone. If
// the file is unchanged, nothing is stored.
func (j *Journal) RecordExternalChange(f UserFile, what string, entries ...[]string) (Change, error) {
	now, err := ReadUserFile(f.Path, f.roots...)
	if err != nil || !now.Exists || f.Exists && hexSHA256(now.Text) == hexSHA256(f.Text) {
		return Change{}, err
	}
	unlock, err := j.lockJournal()
	if err != nil {
		return Change{}, err
	}
	defer unlock()
	c, err := j.beginChange(f, what, hexSHA256(now.Text), entries)
	if err != nil {
		return Change{}, err
	}
	return c, j.pruneChanges()
}
