package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// canvas draws one SVG. Classes are those of page.css, so that colours follow
// the reader's scheme.
type canvas struct {
	body          strings.Builder
	width, height float64
}

// svg is the whole drawing, with a title and a description for screen readers.
func (c *canvas) svg(id, title, desc string) template.HTML {
	return template.HTML(fmt.Sprintf(
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>%s</svg>`,
		num(c.width), num(c.height), id, id, id, escape(title), id, escape(desc), c.body.String()))
}

// num is a coordinate in tenths, and never -0. One that is no number would spoil the whole drawing.
func num(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(x*10)/10+0, 'f', -1, 64)
}

// escape makes any text fit into XML, which knows no control characters.
func escape(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r&0xfffe == 0xfffe {
			return ' '
		}
		return r
	}, s))
}

// tip is the text that shows when the pointer rests on a shape.
func tip(s string) string {
	if s == "" {
		return ""
	}
	return "<title>" + escape(s) + "</title>"
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.body, format, args...) }

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.add(`<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, num(x1), num(y1), num(x2), num(y2))
}

func (c *canvas) rect(class string, x, y, w, h float64, about string) {
	c.add(`<rect class="%s" x="%s" y="%s" width="%s" height="%s">%s</rect>`, class, num(x), num(y), num(math.Max(0, w)), num(math.Max(0, h)), tip(about))
}

func (c *canvas) dot(class string, x, y, r float64, about string) {
	c.add(`<circle class="%s" cx="%s" cy="%s" r="%s">%s</circle>`, class, num(x), num(y), num(r), tip(about))
}

func (c *canvas) path(class, d, about string) {
	if d != "" {
		c.add(`<path class="%s" d="%s">%s</path>`, class, d, tip(about))
	}
}

// text writes a line; classes m and e centre it and end it at x.
func (c *canvas) text(class string, x, y float64, s string) {
	c.add(`<text class="%s" x="%s" y="%s">%s</text>`, class, num(x), num(y), escape(s))
}

// triangle stands on y, diamond lies around it, cross too.
func (c *canvas) triangle(class string, x, y, r float64, about string) {
	c.path(class, "M"+num(x-r)+" "+num(y)+"L"+num(x)+" "+num(y-1.7*r)+"L"+num(x+r)+" "+num(y)+"Z", about)
}

func (c *canvas) diamond(class string, x, y, r float64, about string) {
	c.path(class, "M"+num(x-r)+" "+num(y)+"L"+num(x)+" "+num(y-r)+"L"+num(x+r)+" "+num(y)+"L"+num(x)+" "+num(y+r)+"Z", about)
}

func (c *canvas) cross(class string, x, y, r float64, about string) {
	c.path(class, "M"+num(x-r)+" "+num(y-r)+"L"+num(x+r)+" "+num(y+r)+"M"+num(x-r)+" "+num(y+r)+"L"+num(x+r)+" "+num(y-r), about)
}

// point is a place on a canvas.
type point struct{ x, y float64 }

// polyline is the path through points.
func polyline(points []point) string {
	var b strings.Builder
	command := "M"
	for _, p := range points {
		b.WriteString(command + num(p.x) + " " + num(p.y))
		command = "L"
	}
	return b.String()
}

// stairs is the path that keeps each height until the next point.
func stairs(points []point) string {
	var b strings.Builder
	for i, p := range points {
		if i == 0 {
			b.WriteString("M" + num(p.x) + " " + num(p.y))
			continue
		}
		b.WriteString("H" + num(p.x) + "V" + num(p.y))
	}
	return b.String()
}

// wide is about how wide a text is, at a size in pixels.
func wide(s string, size float64) float64 { return 0.62 * size * float64(utf8.RuneCountInString(s)) }

// bare is the drawing alone, for a sign that stands beside its meaning.
func (c *canvas) bare() template.HTML {
	return template.HTML(fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="sign" viewBox="0 0 %s %s" width="%s" height="%s" aria-hidden="true">%s</svg>`,
		num(c.width), num(c.height), num(c.width), num(c.height), c.body.String()))
}
