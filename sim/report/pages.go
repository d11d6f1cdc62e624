package report

import (
	"bytes"
	"embed"
	"html/template"
	"io"
)

//go:embed pages
var files embed.FS

// pages are the templates of all reports.
var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"css": func() (template.CSS, error) {
		b, err := files.ReadFile("pages/page.css")
		return template.CSS(b), err
	},
	"lines": lines,
}).ParseFS(files, "pages/*.html"))

// write writes a page, all or nothing, without the control characters that what
// others wrote may hold.
func write(w io.Writer, name string, data any) error {
	var page bytes.Buffer
	if err := pages.ExecuteTemplate(&page, name, data); err != nil {
		return err
	}
	_, err := w.Write(bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, page.Bytes()))
	return err
}
