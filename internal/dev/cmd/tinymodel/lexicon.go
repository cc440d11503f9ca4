package main

import "strings"

// lexicon has words to make tools, parameters and values of.
type lexicon struct {
	verbs, nouns, adjectives, people, cities []string
	pieces                                   []string // of which words are joined; none before there is a vocabulary
}

// trainingWords are the words that training draws from.
var trainingWords = lexicon{verbs: verbs, nouns: nouns, adjectives: adjectives, people: people, cities: cities}

// Words of which the names of tools, their parameters and their values are made. heldOut has words that no chat of the
// training and no text of the vocabulary contains.
var (
	verbs = strings.Fields(`
		add ask book build buy call cancel change check clean close copy count create cut delete draw edit end fetch
		fill find fix get give hide hold join keep leave lend list load lock make mark merge move open order pack pay
		pick plan play post print pull push put read rename rent reply save scan search sell send set share show sign
		sort start stop store take test track turn update use view wait wash write archive assign block clear close
		compare convert download export import invite measure notify pause publish record refund remove report request
		reset restore return schedule select submit translate upload verify`)
	nouns = strings.Fields(`
		account address agent album alarm answer app apple area article author bag ball bank base bath battery bed bill
		bird board boat book box branch bread bridge budget bus button cable cake camera car card cart case cat chair
		channel chart chat city class client clock cloud club code coffee color comment company contact contract cost
		country course cover crew cup customer date day deal desk device dinner disk doctor document dog door draft
		driver email engine entry error event expense export farm fee field file film filter flag flight floor flower
		folder food form friend game garden gift goal group guest guide hall hand hat head history home horse host hotel
		hour house image index invoice issue item job key king label lamp language lesson letter level lamp lesson
		library light limit line link list location log machine mail map market match meal meeting member memory menu
		message metal milk minute mode model money month moon movie music name network news night note number office
		option order owner package page paper parcel park part party password path payment pen permit person phone
		photo piano pizza plan plane plant plate player point policy pool port post price printer prize product profile
		program project queen query question queue rain rate reason receipt recipe record region reminder rent reply
		report request result review reward rice ring river road role room route row rule salary sale sample school
		score screen sea seat seed server service session shelf ship shirt shoe shop signal site size skill snow sound
		source space spoon sport stage star state station status stock stone store storm story street student stream
		sum sun table tag task tax taxi team text theme ticket tile time title token tool tower town toy track train
		tree trip truck unit user value vendor version video visit voice vote wallet wall water weather week wheel
		window winter word worker year zone`)
	adjectives = strings.Fields(`
		active big black blue bright brown cheap clean cold cool daily dark deep dry early easy empty fast fine flat free
		fresh full good gray great green happy hard heavy high hot huge kind large last late light local long low main
		new next nice old open pink private public quick quiet rare ready red rich right round safe sharp short silver
		slow small soft sweet tall thin tiny total urgent warm weak weekly white wide wild yellow young`)
	people = strings.Fields(`
		Ada Alan Amy Ann Ben Bob Carl Carol Chris Clara Dan David Dora Ella Emma Eric Eva Finn Frank Grace Hana Hugo Ida
		Ivan Jack Jane John Karen Lara Leo Lily Lucy Luis Maria Mark Max Mia Nina Nora Oscar Paul Peter Rosa Ruth Sam
		Sara Tina Tom Uma Vera Victor Will Yan Zoe Miller Smith Brown Jones Wilson Lopez Moore Clark Young Hill Green
		Adams Baker Carter Cruz Gray Hall King Lee Long Reed Rossi Silva Stone Weber`)
	cities = strings.Fields(`
		Athens Berlin Bern Bonn Boston Cairo Chicago Dallas Delhi Denver Dublin Geneva Hanoi Lagos Lima Lisbon London
		Lyon Madrid Miami Milan Munich Nairobi Oslo Paris Porto Prague Quito Riga Rome Seoul Sofia Sydney Tokyo Toronto
		Turin Venice Vienna Warsaw Zurich`)
	heldOut = lexicon{
		verbs: strings.Fields(`
			approve charge collect deliver drop grant inspect launch polish rotate split trim unlock warn`),
		nouns: strings.Fields(`
			badge bicycle candle castle coupon defect donkey forecast fridge hammer island kettle lantern meter
			orbit ornament patient planet puzzle pumpkin reservation rocket saddle shipment tenant tractor
			tunnel violin voucher wagon`),
		adjectives: strings.Fields(`
			bitter brave broken calm costly curly digital gentle golden hidden humid polite purple remote secret`),
		people: strings.Fields(`
			Bruno Celia Dario Elena Felix Gina Henrik Irma Jonas Kofi Marta Nikhil Olga Priya Quentin Fischer
			Novak Okafor Santos Tanaka`),
		cities: strings.Fields(`
			Bogota Budapest Dakar Helsinki Jakarta Krakow Manila Naples Osaka Perth Santiago Tunis`),
	}
)
