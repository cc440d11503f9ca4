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
		if s == "" {
			return s
		}
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
	number, format := 0, "%02d"
	year, week := t.ISOWeek()
	weekday := int(t.Weekday())
	switch c {
	case 'C':
		number = t.Year() / 100
	case 'f':
		number, format = t.Nanosecond()/1000, "%06d"
	case 'g':
		number = year % 100
	case 'G':
		number, format = year, "%d"
	case 'j':
		number, format = t.YearDay(), "%03d"
	case 'k':
		number, format = t.Hour(), "%2d"
	case 'l':
		number, format = (t.Hour()+11)%12+1, "%2d"
	case 's':
		number, format = int(t.Unix()), "%d"
	case 'u':
		number, format = (weekday+6)%7+1, "%d"
	case 'U':
		number = (t.YearDay() + 6 - weekday) / 7
	case 'V':
		number = week
	case 'w':
		number, format = weekday, "%d"
	case 'W':
		number = (t.YearDay() + 6 - (weekday+6)%7) / 7
	default:
		return "%" + string(c)
	}
	return fmt.Sprintf(format, number)
}

// timeLayouts are the fields that Go has layouts for, and those that are constant. There is no zone.
var timeLayouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02",
	'D': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'h': "Jan", 'H': "15", 'I': "03", 'm': "01", 'M': "04",
	'P': "pm", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05",
	'y': "06", 'Y': "2006", 'p': "PM", 'n': "\n", 't': "\t", '%': "%", 'z': "", 'Z': "",
}
