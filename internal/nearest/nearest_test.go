package nearest

import "testing"

func TestTheNearestNameIsFound(t *testing.T) {
	known := []string{"listen", "bootstrap", "lister"}
	for _, c := range []struct {
		name    string
		most    int
		near    string
		letters int
	}{
		{"listen", 2, "listen", 0}, {"listem", 2, "listen", 1}, {"liste", 2, "listen", 1}, {"bootsrap", 1, "bootstrap", 1},
		{"nothing", 2, "", 3}, {"liszen", 0, "", 1}, {"", 6, "listen", 6},
	} {
		if near, letters := Name(c.name, known, c.most); near != c.near || letters != c.letters {
			t.Errorf("%q, at most %d letters: %q, %d letters; want %q, %d", c.name, c.most, near, letters, c.near, c.letters)
		}
	}
}
