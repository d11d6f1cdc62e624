package referral

import (
	"time"

	"github.com/aweigh/aweigh"
)

// Newest returns the highest revision that anchors with more weight than may lie have named.
func (f *Scope) Newest() int64 { return f.newest }

// Last returns the position of the latest answer that counted: its height, time and revision.
func (f *Scope) Last() Answer { return f.last }

// Expect ranks an anchor as one that answers within a time, until it answers.
func (f *Scope) Expect(id aweigh.AnchorID, within time.Duration) {
	f.seen[id] = Conduct{took: within}
}

// Forget drops what anchors said of delegations and revisions, and the cache, so that the anchors are asked again.
func (f *Scope) Forget() {
	f.given, f.newest = nil, 0
	clear(f.cache)
}
