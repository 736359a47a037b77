package upstream

import (
	"slices"
	"time"
)

// deserted are requests that were given up, at which the server may still be at
// work: what it says by itself may be about them. It is for the only request in
// flight none the less while all of them are the same client's.
type deserted struct{ all []desertedRequest }

type desertedRequest struct {
	id    uint64
	owner *sharedLink
	until time.Time
}

// desertedTime is how long a server is taken to be at work on a request that was
// given up, unless it answers before: few say when they stop.
const desertedTime = time.Minute

func (d *deserted) add(r *request) {
	now := time.Now()
	d.forget(now)
	d.all = append(d.all, desertedRequest{r.id, r.owner, now.Add(desertedTime)})
}

func (d *deserted) forget(now time.Time) {
	d.all = slices.DeleteFunc(d.all, func(a desertedRequest) bool { return now.After(a.until) })
}

func (d *deserted) answered(id uint64) {
	d.all = slices.DeleteFunc(d.all, func(a desertedRequest) bool { return a.id == id })
}

// byOther says whether one of them was somebody else's than r is.
func (d *deserted) byOther(r *request) bool {
	if len(d.all) == 0 {
		return false
	}
	d.forget(time.Now())
	return slices.ContainsFunc(d.all, func(a desertedRequest) bool { return a.owner != r.owner })
}
