package show

import (
	"os/exec"
	"testing"
)

func TestShellsReadWordsBack(t *testing.T) {
	for _, word := range []string{"", "riga", "no word since May", "it's $HOME; `x` \"\\", "--x", "/a/b", "a=b", "~"} {
		out, err := exec.Command("sh", "-c", "printf %s "+Word(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q: %q, %v", word, out, err)
		}
	}
}
