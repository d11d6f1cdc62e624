package show

import "fmt"

// Member is a node of a network that was started here.
type Member struct {
	Name, Peer, API, Dir string
	Etcd                 string // where etcd's API is served, if it is
	Log                  string // file, if it has one
	PID                  int    // its process, 0 for this one
}

// Members writes the nodes of a network whose first block since the start is
// final, and commands to try next.
func (p Printer) Members(members []Member, height uint64, key string) error {
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
	try := ""
	if first.Etcd != "" {
		try = fmt.Sprintf("\n  etcdctl --endpoints %s get %s", first.Etcd, key)
	}
	_, err := fmt.Fprintf(p.Out, `
insecure: every program on this machine can use these ports; with --secure they take certificates
ready: block %d is final, and %s is set. In another terminal, try

  aweigh get %s
  aweigh why %s
  aweigh status%s

Ctrl-C stops it.
`, height, key, key, key, try)
	return err
}
