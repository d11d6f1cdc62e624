package scenario

// bounds draws bounds of the program that are small, in one world of two: a few of them, each its least value or near
// it, and now and then at some nodes alone.
func (d drawing) bounds(s *Scenario) {
	if d.one(2) {
		return
	}
	in := 2 + d.IntN(12)
	for _, k := range s.Bounds.knobs() {
		if n := k.least + d.Int64N(4)*max(1, k.least/2); d.one(in) {
			k.set(min(n, k.most))
		}
	}
	if d.one(4) {
		s.Load.Value = 1 << d.IntN(13) // of bytes as well there are bounds
	}
	if nodes := s.Network.Anchors + s.Network.Observers; d.one(3) {
		s.Bounds.At = d.Perm(nodes)[:1+d.IntN(nodes)]
	}
}
