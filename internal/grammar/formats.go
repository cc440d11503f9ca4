package grammar

import (
	"maps"
	"slices"
	"strings"
)

// The parts of formats (RFC 3339, appendix A; RFC 3986, appendix A; RFC 1123, section 2.1).
const (
	formatDate = `(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|` +
		`02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	formatClock    = `(?:[01]\d|2[0-3]):[0-5]\d`
	formatTime     = formatClock + `:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]` + formatClock + `)`
	formatLabel    = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}[A-Za-z0-9])?`
	formatHost     = formatLabel + `(?:\.` + formatLabel + `){0,7}`
	formatByte     = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	formatIPv4     = formatByte + `(?:\.` + formatByte + `){3}`
	formatDuration = `P(?:\d{1,9}W|(?:\d{1,9}Y(?:\d{1,9}M(?:\d{1,9}D)?)?|\d{1,9}M(?:\d{1,9}D)?|\d{1,9}D)(?:T` +
		formatHours + `)?|T` + formatHours + `)`
	formatHours = `(?:\d{1,9}H(?:\d{1,9}M(?:\d{1,9}S)?)?|\d{1,9}M(?:\d{1,9}S)?|\d{1,9}S)`
	formatURI   = `[A-Za-z][A-Za-z0-9+.-]{0,31}:(?://` + formatHost + `(?::\d{1,5})?)?` +
		`(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)*/?` +
		`(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?`
)

// formats are expressions for the formats of JSON Schema. Each allows some of what its standard allows, never more: no
// leap seconds, no quoted names and comments in mail addresses, and names of up to eight labels of 30 characters.
var formats = map[string]string{
	"date":      formatDate,
	"time":      formatTime,
	"date-time": formatDate + `T` + formatTime,
	"duration":  formatDuration,
	"email":     `[A-Za-z0-9_+-]{1,30}(?:\.[A-Za-z0-9_+-]{1,30})?@` + formatHost,
	"hostname":  formatHost,
	"ipv4":      formatIPv4,
	"ipv6":      formatIPv6(),
	"uuid":      `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,
	"uri":       formatURI,
}

// formatIPv6 is the eight groups of an address, or fewer with one gap (RFC 4291, section 2.2).
func formatIPv6() string {
	const group = `[0-9a-fA-F]{1,4}`
	forms := []string{`(?:` + group + `:){7}` + group, `::`, `(?:` + group + `:){1,7}:`}
	for before := 0; before <= 6; before++ {
		left := ":"
		if before > 0 {
			left = `(?:` + group + `:){` + string(rune('0'+before)) + `}`
		}
		forms = append(forms, left+`(?::`+group+`){1,`+string(rune('0'+7-before))+`}`)
	}
	return `(?:` + strings.Join(forms, `|`) + `)`
}

// formatNames returns the known formats for an error.
func formatNames() string {
	return strings.Join(slices.Sorted(maps.Keys(formats)), ", ")
}
