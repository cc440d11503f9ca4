package jinja

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats a time as C does in the locale "C". The time has no zone, as datetime.now() has none.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		flag := byte(0)
		if strings.IndexByte("-_0^#", format[i]) >= 0 && i+1 < len(format) {
			flag = format[i]
			i++
		}
		b.WriteString(flagged(timeField(t, format[i]), flag))
	}
	return b.String()
}

// flagged applies a flag to a field, which changes its padding or its case.
func flagged(s string, flag byte) string {
	switch flag {
	case '-':
		if trimmed := strings.TrimLeft(s, "0 "); trimmed != "" {
			return trimmed
		}
		return "0"
	case '_':
		trimmed := strings.TrimLeft(s[:len(s)-1], "0")
		return strings.Repeat(" ", len(s)-1-len(trimmed)) + trimmed + s[len(s)-1:]
	case '^', '#':
		return strings.ToUpper(s)
	}
	return s
}

func timeField(t time.Time, c byte) string {
	if layout, ok := timeLayouts[c]; ok {
		return t.Format(layout)
	}
	year, week := t.ISOWeek()
	switch c {
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100)
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000)
	case 'g':
		return fmt.Sprintf("%02d", year%100)
	case 'G':
		return fmt.Sprintf("%d", year)
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay())
	case 'k':
		return fmt.Sprintf("%2d", t.Hour())
	case 'l':
		return fmt.Sprintf("%2d", (t.Hour()+11)%12+1)
	case 'n':
		return "\n"
	case 'p':
		return t.Format("PM")
	case 's':
		return fmt.Sprintf("%d", t.Unix())
	case 't':
		return "\t"
	case 'u':
		return fmt.Sprintf("%d", (int(t.Weekday())+6)%7+1)
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7)
	case 'V':
		return fmt.Sprintf("%02d", week)
	case 'w':
		return fmt.Sprintf("%d", int(t.Weekday()))
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7)
	case 'z', 'Z':
		return ""
	case '%':
		return "%"
	}
	return "%" + string(c)
}

// timeLayouts are the fields that Go has layouts for.
var timeLayouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02",
	'D': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'h': "Jan", 'H': "15", 'I': "03", 'm': "01", 'M': "04",
	'P': "pm", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05",
	'y': "06", 'Y': "2006",
}
