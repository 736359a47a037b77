package ops

import (
	"context"
	"io/fs"

	"mcpproxy/internal/problem"
)

// ConfigHistoryQuery selects a page of the configuration history.
type ConfigHistoryQuery struct {
	Limit  int `query:"limit" min:"1" max:"100" default:"50" doc:"The maximum number of versions."`
	Offset int `query:"offset" min:"0" max:"1000" doc:"The number of versions to skip."`
}

// VersionList is a page of the history, newest first.
type VersionList struct {
	Versions []Version `json:"versions"`
	Total    int       `json:"total"`
	Limit    int       `json:"limit"`
	Offset   int       `json:"offset"`
}

// ConfigVersionRef identifies a version.
type ConfigVersionRef struct {
	ID string `path:"id" doc:"The id of the version."`
}

// VersionText is the text of a version.
type VersionText struct {
	ID   string `json:"id"`
	Text string `json:"text" doc:"The text of the version, with placeholders as in GET /config. A placeholder can be saved again if its secret is still in the file."`
}

// ListVersions lists the versions of the file that were applied.
func (s *ConfigOperations) ListVersions(_ context.Context, _ Caller, in ConfigHistoryQuery) (VersionList, error) {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	all := s.history.listVersions()
	from := min(in.Offset, len(all))
	return VersionList{append([]Version{}, all[from:min(from+in.Limit, len(all))]...), len(all), in.Limit, in.Offset}, nil
}

// VersionText returns the text of a version.
func (s *ConfigOperations) VersionText(_ context.Context, _ Caller, in ConfigVersionRef) (VersionText, error) {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	err := error(fs.ErrNotExist)
	var text []byte
	if idPattern.MatchString(in.ID) {
		_, text, err = s.history.readVersion(in.ID, true)
	}
	if err != nil {
		return VersionText{}, problem.Newf(problem.NotFound, "The version '%s' of the configuration does not exist.", problem.ClipName(in.ID)).
			WithHint("GET /config/history lists them.")
	}
	return VersionText{in.ID, s.masker.maskText(text, nil).text}, nil
}
