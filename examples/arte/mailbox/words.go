package mailbox

import "strings"

// people write to one another, about an item of a project. The words are plain, so that a small model copies them well.
var (
	people = strings.Fields(`Ann Bob Carl Dora Emma Finn Ida Max Nora Tom Lea Paul Rita Sam Tina Vera Ben Eva Leo Mia`)

	projects = strings.Fields(`
		river garden castle mirror silver candle bridge tiger planet cotton market forest island copper pepper tunnel
		window basket violin desert rocket ladder carpet orange harbor marble winter engine camera button bottle timber
		pocket needle saddle barrel cherry walnut ginger velvet meadow canyon falcon beaver badger turtle salmon spider
		anchor lantern hammer shovel pencil folder drawer helmet jacket pillow kettle teapot hazel cedar maple willow`)

	items = strings.Fields(`budget invoice salary price fee discount room desk order parcel ticket quota stock fine`)

	months = strings.Fields(`January February March April May June July August September October November December`)

	smallTalk = []string{
		"See you at lunch.", "The coffee is back.", "Who has my umbrella?", "Please close the door.", "I am late.",
		"The lift is slow today.", "There is cake.", "Happy birthday!", "The printer works again.", "Call me, please.",
	}
)
