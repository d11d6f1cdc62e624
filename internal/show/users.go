package show

import (
	"fmt"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
)

type userJSON struct {
	Name     string   `json:"name"`
	Password bool     `json:"password"` // it has one
	Roles    []string `json:"roles"`
}

type roleJSON struct {
	Name        string           `json:"name"`
	Permissions []permissionJSON `json:"permissions"`
}

type permissionJSON struct {
	May  string `json:"may"`  // read, write or both
	Keys string `json:"keys"` // for people
}

// may is the text of a permission.
func may(p *aweighv1.Permission) string {
	switch {
	case p.Read && p.Write:
		return "read and write"
	case p.Write:
		return "write"
	}
	return "read"
}

// rangeText is a range of keys for people.
func rangeText(key, end []byte) string {
	switch {
	case len(end) == 0:
		return Key(key)
	case string(end) == "\x00":
		return "from " + Key(key) + " on"
	case len(key) > 0 && len(end) == len(key) && string(key[:len(key)-1]) == string(end[:len(end)-1]) && end[len(end)-1] == key[len(key)-1]+1:
		return Key(key) + "…"
	}
	return "from " + Key(key) + " to before " + Key(end)
}

// Users writes the users of the port of etcd's API, with their permissions.
func (p Printer) Users(r *aweighv1.UsersResponse) error {
	if p.Format == JSON {
		out := struct {
			Header   header     `json:"header"`
			Enabled  bool       `json:"enabled"`
			Revision int64      `json:"revision"`
			Users    []userJSON `json:"users"`
			Roles    []roleJSON `json:"roles"`
		}{headerJSON(r.Header), r.Enabled, r.Revision, []userJSON{}, []roleJSON{}}
		for _, u := range r.Users {
			out.Users = append(out.Users, userJSON{u.Name, u.Password, append([]string{}, u.Roles...)})
		}
		for _, x := range r.Roles {
			j := roleJSON{Name: x.Name, Permissions: []permissionJSON{}}
			if x.Name == "root" { // by its name alone
				j.Permissions = append(j.Permissions, permissionJSON{"read and write", "all"})
			}
			for _, g := range x.Permissions {
				j.Permissions = append(j.Permissions, permissionJSON{may(g), rangeText(g.Key, g.RangeEnd)})
			}
			out.Roles = append(out.Roles, j)
		}
		return p.JSON(out)
	}
	if err := p.users(r); err != nil {
		return err
	}
	return p.toldAlone(r.Header)
}

func (p Printer) users(r *aweighv1.UsersResponse) error {
	state := "disabled: every client that reaches etcd's port has all rights"
	if r.Enabled {
		state = "enabled: clients of etcd's port must identify themselves"
	}
	if _, err := fmt.Fprintf(p.Out, "users are %s\n", state); err != nil || len(r.Users)+len(r.Roles) == 0 {
		return err
	}
	fmt.Fprintln(p.Out)
	rows := [][]string{{"USER", "PASSWORD", "ROLES"}}
	for _, u := range r.Users {
		password := "none: by certificate"
		if u.Password {
			password = "yes"
		}
		rows = append(rows, []string{shortened(u.Name, 38), password, strings.Join(u.Roles, ", ")})
	}
	if err := p.table(rows...); err != nil || len(r.Roles) == 0 {
		return err
	}
	fmt.Fprintln(p.Out)
	rows = [][]string{{"ROLE", "MAY", "KEYS"}}
	for _, x := range r.Roles {
		if x.Name == "root" {
			rows = append(rows, []string{shortened(x.Name, 38), "everything", "all"})
			continue
		}
		if len(x.Permissions) == 0 {
			rows = append(rows, []string{shortened(x.Name, 38), "nothing", ""})
		}
		for _, g := range x.Permissions {
			rows = append(rows, []string{shortened(x.Name, 38), may(g), rangeText(g.Key, g.RangeEnd)})
		}
	}
	return p.table(rows...)
}
