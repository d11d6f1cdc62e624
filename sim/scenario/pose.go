package scenario

import "slices"

// Poses reports whether authors have different rights, and a role signs changes for others.
func (s *Scenario) Poses() bool {
	return len(s.Network.Authors) > 0 && slices.ContainsFunc(s.Roles, func(r Role) bool { return slices.Contains(r.Attacks, "pose") })
}

// poses makes half of the roles pose as others, in worlds whose authors have different rights.
func (d drawing) poses(s *Scenario) {
	if len(s.Network.Authors) == 0 {
		return
	}
	for i := range s.Roles {
		if r := &s.Roles[i]; d.one(2) {
			r.Attacks = append(slices.Clone(r.Attacks), "pose")
		}
	}
}
