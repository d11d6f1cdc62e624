package show

import (
	"fmt"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

// knownBy is how a node knows a caller, by the kind of its identity.
var knownBy = map[string]string{
	"anonymous": "nothing: the port takes clients without a credential",
	"local":     "the user at the other end of the node's socket",
	"cert":      "the certificate of the client",
	"oidc":      "a token of an issuer",
	"user":      "a token of etcd's",
}

// WhoAmI writes the caller that a node has found, and its rights.
func (p Printer) WhoAmI(r *aweighv1.WhoAmIResponse) error {
	kind, _, _ := strings.Cut(r.Identity, ":")
	if p.Format == JSON {
		out := struct {
			Header      header           `json:"header"`
			Identity    string           `json:"identity"`
			KnownBy     string           `json:"known_by"`
			Owner       bool             `json:"owner"`
			AnchorKey   bool             `json:"anchor_key"` // it may use the anchor's key
			Enabled     bool             `json:"users_enabled"`
			User        string           `json:"user"`
			Root        bool             `json:"root"`
			Roles       []string         `json:"roles"`
			Permissions []permissionJSON `json:"permissions"`
		}{
			headerJSON(r.Header), r.Identity, knownBy[kind], r.Owner, r.AnchorKey, r.Enabled, r.User, r.Root,
			append([]string{}, r.Roles...), []permissionJSON{},
		}
		for _, g := range r.Permissions {
			out.Permissions = append(out.Permissions, permissionJSON{may(g), rangeText(g.Key, g.RangeEnd)})
		}
		return p.JSON(out)
	}
	rows := [][]string{{"identity", r.Identity}, {"known by", knownBy[kind]}}
	if r.User != "" {
		rows = append(rows, []string{"user", fmt.Sprintf("%s (roles: %s)", r.User, strings.Join(r.Roles, ", "))})
	}
	switch {
	case r.Owner:
		rows = append(rows, []string{"may", "do everything, and use the anchor's key"})
	case !r.Enabled && kind == "oidc":
		rows = append(rows, []string{"may", "do nothing: users are not enabled"})
	case !r.Enabled:
		rows = append(rows, []string{"may", "read and write everything: users are not enabled"})
	case r.Root:
		rows = append(rows, []string{"may", "read and write everything"})
	case r.User == "":
		rows = append(rows, []string{"may", "do nothing: users are enabled, and it is none of them"})
	case len(r.Permissions) == 0:
		rows = append(rows, []string{"may", "read and write nothing"})
	}
	if !r.Owner && !r.Root {
		for _, g := range r.Permissions {
			rows = append(rows, []string{"may", may(g) + " " + rangeText(g.Key, g.RangeEnd)})
		}
	}
	if r.AnchorKey && !r.Owner {
		rows = append(rows, []string{"may", "use the anchor's key, to govern and vote, as may every program of every user of that machine: " +
			"the node is insecure"})
	}
	return p.table(rows...)
}
