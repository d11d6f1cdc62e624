package show

import "fmt"

// Member is a node of a network that was started here.
type Member struct {
	Name, Peer, API, Dir string
	Etcd                 string // where etcd's API is served, if it is
	Log                  string // file, if it has one
	PID                  int    // its process, 0 for this one
}

// Access names the files with which clients reach the ports of a network; empty if the ports take any client.
type Access struct {
	CA, Cert, Key string
}

// flags are those of aweigh and of etcdctl, which are the same.
func (a Access) flags() string {
	return Line(fmt.Sprintf("--cacert %s --cert %s --key %s", Word(a.CA), Word(a.Cert), Word(a.Key)))
}

// Members writes the nodes of a network whose first block since the start is
// final, and commands to try next.
func (p Printer) Members(members []Member, height uint64, key string, access Access) error {
	rows := [][]string{{"NODE", "PEER"}}
	var first Member
	if len(members) > 0 {
		first = members[0]
	}
	column := func(there bool, title string, of func(Member) string) {
		if !there {
			return
		}
		rows[0] = append(rows[0], title)
		for i, m := range members {
			rows[i+1] = append(rows[i+1], of(m))
		}
	}
	for _, m := range members {
		rows = append(rows, []string{m.Name, m.Peer})
	}
	column(first.Etcd != "", "ETCD", func(m Member) string { return m.Etcd })
	column(true, "API", func(m Member) string { return m.API })
	column(first.PID != 0, "PID", func(m Member) string { return fmt.Sprint(m.PID) })
	column(true, "DATA", func(m Member) string { return m.Dir })
	column(first.Log != "", "LOG", func(m Member) string { return m.Log })
	fmt.Fprintln(p.Out)
	if err := p.table(rows...); err != nil {
		return err
	}
	who, try, more := "insecure: every program of every user of this machine can read and write by these ports, and govern with the "+
		"anchors' keys; with --secure they ask for certificates", "", ""
	if first.Etcd != "" {
		try = fmt.Sprintf("\n  etcdctl --endpoints %s get %s", first.Etcd, key)
	}
	if access != (Access{}) {
		who = "secure: these ports ask for certificates of " + access.CA + "; " + access.Cert + " is the administrator's"
		if first.Etcd != "" {
			try = fmt.Sprintf("\n  etcdctl --endpoints https://%s %s get %s", first.Etcd, access.flags(), key)
			who += ", and that of etcd's user root"
		}
		more = fmt.Sprintf("\nThe commands of aweigh go by the nodes' sockets. By a port:\n\n  aweigh get %s --api https://%s %s\n", key, first.API, access.flags())
	}
	_, err := fmt.Fprintf(p.Out, `
%s
ready: block %d is final, and %s is set. In another terminal, try

  aweigh get %s
  aweigh why %s
  aweigh status%s
%s
Ctrl-C stops it.
`, Line(who), height, key, key, key, try, more)
	return err
}
