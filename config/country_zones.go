package config

import (
	"strings"
	"sync"
	"time"
)

// zonesOf are the time zones in which the numbers of a country may be; nil for an unknown country.
func zonesOf(country string) []*time.Location { return allZones()[country] }

// allZones loads the zones of all countries, once, when the first document asks for them.
var allZones = sync.OnceValue(func() map[string][]*time.Location {
	out, country := map[string][]*time.Location{}, ""
	for word := range strings.FieldsSeq(countryZones) {
		if len(word) == 2 {
			country = word
			continue
		}
		if zone, err := time.LoadLocation(word); err == nil {
			out[country] = append(out[country], zone)
		}
	}
	return out
})

// countryZones lists, after the code of each country, its zones by zone.tab of the IANA time zone
// database. Of several zones that show the same time all year, one is listed. Zones that the
// country's own operators do not use, and one without subscribers, are left out (Asia/Urumqi,
// Europe/Simferopol, Antarctica/Macquarie).
const countryZones = `
	ac Atlantic/St_Helena ad Europe/Andorra ae Asia/Dubai af Asia/Kabul ag America/Antigua ai
	America/Anguilla al Europe/Tirane am Asia/Yerevan ao Africa/Luanda ar
	America/Argentina/Buenos_Aires as Pacific/Pago_Pago at Europe/Vienna au Australia/Lord_Howe
	Australia/Hobart Australia/Broken_Hill Australia/Brisbane Australia/Darwin Australia/Perth
	Australia/Eucla aw America/Aruba ax Europe/Mariehamn az Asia/Baku ba Europe/Sarajevo bb
	America/Barbados bd Asia/Dhaka be Europe/Brussels bf Africa/Ouagadougou bg Europe/Sofia bh
	Asia/Bahrain bi Africa/Bujumbura bj Africa/Porto-Novo bl America/St_Barthelemy bm
	Atlantic/Bermuda bn Asia/Brunei bo America/La_Paz bq America/Kralendijk br America/Noronha
	America/Belem America/Campo_Grande America/Eirunepe bs America/Nassau bt Asia/Thimphu bw
	Africa/Gaborone by Europe/Minsk bz America/Belize ca America/St_Johns America/Halifax
	America/Blanc-Sablon America/Toronto America/Atikokan America/Winnipeg America/Regina
	America/Edmonton America/Creston America/Vancouver cc Indian/Cocos cd Africa/Kinshasa
	Africa/Lubumbashi cf Africa/Bangui cg Africa/Brazzaville ch Europe/Zurich ci Africa/Abidjan ck
	Pacific/Rarotonga cl America/Santiago America/Coyhaique Pacific/Easter cm Africa/Douala cn
	Asia/Shanghai co America/Bogota cr America/Costa_Rica cu America/Havana cv Atlantic/Cape_Verde
	cw America/Curacao cx Indian/Christmas cy Asia/Nicosia cz Europe/Prague de Europe/Berlin dj
	Africa/Djibouti dk Europe/Copenhagen dm America/Dominica do America/Santo_Domingo dz
	Africa/Algiers ec America/Guayaquil Pacific/Galapagos ee Europe/Tallinn eg Africa/Cairo eh
	Africa/El_Aaiun er Africa/Asmara es Europe/Madrid Atlantic/Canary et Africa/Addis_Ababa fi
	Europe/Helsinki fj Pacific/Fiji fk Atlantic/Stanley fm Pacific/Chuuk Pacific/Pohnpei fo
	Atlantic/Faroe fr Europe/Paris ga Africa/Libreville gb Europe/London gd America/Grenada ge
	Asia/Tbilisi gf America/Cayenne gg Europe/Guernsey gh Africa/Accra gi Europe/Gibraltar gl
	America/Nuuk America/Danmarkshavn America/Thule gm Africa/Banjul gn Africa/Conakry gp
	America/Guadeloupe gq Africa/Malabo gr Europe/Athens gt America/Guatemala gu Pacific/Guam gw
	Africa/Bissau gy America/Guyana hk Asia/Hong_Kong hn America/Tegucigalpa hr Europe/Zagreb ht
	America/Port-au-Prince hu Europe/Budapest id Asia/Jakarta Asia/Makassar Asia/Jayapura ie
	Europe/Dublin il Asia/Jerusalem im Europe/Isle_of_Man in Asia/Kolkata io Indian/Chagos iq
	Asia/Baghdad ir Asia/Tehran is Atlantic/Reykjavik it Europe/Rome je Europe/Jersey jm
	America/Jamaica jo Asia/Amman jp Asia/Tokyo ke Africa/Nairobi kg Asia/Bishkek kh
	Asia/Phnom_Penh ki Pacific/Tarawa Pacific/Kanton Pacific/Kiritimati km Indian/Comoro kn
	America/St_Kitts kp Asia/Pyongyang kr Asia/Seoul kw Asia/Kuwait ky America/Cayman kz
	Asia/Almaty la Asia/Vientiane lb Asia/Beirut lc America/St_Lucia li Europe/Vaduz lk
	Asia/Colombo lr Africa/Monrovia ls Africa/Maseru lt Europe/Vilnius lu Europe/Luxembourg lv
	Europe/Riga ly Africa/Tripoli ma Africa/Casablanca mc Europe/Monaco md Europe/Chisinau me
	Europe/Podgorica mf America/Marigot mg Indian/Antananarivo mh Pacific/Majuro mk Europe/Skopje
	ml Africa/Bamako mm Asia/Yangon mn Asia/Ulaanbaatar Asia/Hovd mo Asia/Macau mp Pacific/Saipan
	mq America/Martinique mr Africa/Nouakchott ms America/Montserrat mt Europe/Malta mu
	Indian/Mauritius mv Indian/Maldives mw Africa/Blantyre mx America/Mexico_City America/Cancun
	America/Matamoros America/Ciudad_Juarez America/Mazatlan America/Tijuana my Asia/Kuala_Lumpur
	mz Africa/Maputo na Africa/Windhoek nc Pacific/Noumea ne Africa/Niamey nf Pacific/Norfolk ng
	Africa/Lagos ni America/Managua nl Europe/Amsterdam no Europe/Oslo np Asia/Kathmandu nr
	Pacific/Nauru nu Pacific/Niue nz Pacific/Auckland Pacific/Chatham om Asia/Muscat pa
	America/Panama pe America/Lima pf Pacific/Tahiti Pacific/Marquesas Pacific/Gambier pg
	Pacific/Port_Moresby Pacific/Bougainville ph Asia/Manila pk Asia/Karachi pl Europe/Warsaw pm
	America/Miquelon pr America/Puerto_Rico ps Asia/Gaza pt Europe/Lisbon Atlantic/Azores pw
	Pacific/Palau py America/Asuncion qa Asia/Qatar re Indian/Reunion ro Europe/Bucharest rs
	Europe/Belgrade ru Europe/Kaliningrad Europe/Moscow Europe/Astrakhan Asia/Yekaterinburg
	Asia/Omsk Asia/Novosibirsk Asia/Irkutsk Asia/Chita Asia/Vladivostok Asia/Magadan
	Asia/Kamchatka rw Africa/Kigali sa Asia/Riyadh sb Pacific/Guadalcanal sc Indian/Mahe sd
	Africa/Khartoum se Europe/Stockholm sg Asia/Singapore sh Atlantic/St_Helena si
	Europe/Ljubljana sj Arctic/Longyearbyen sk Europe/Bratislava sl Africa/Freetown sm
	Europe/San_Marino sn Africa/Dakar so Africa/Mogadishu sr America/Paramaribo ss Africa/Juba st
	Africa/Sao_Tome sv America/El_Salvador sx America/Lower_Princes sy Asia/Damascus sz
	Africa/Mbabane ta Atlantic/St_Helena tc America/Grand_Turk td Africa/Ndjamena tg Africa/Lome
	th Asia/Bangkok tj Asia/Dushanbe tk Pacific/Fakaofo tl Asia/Dili tm Asia/Ashgabat tn
	Africa/Tunis to Pacific/Tongatapu tr Europe/Istanbul tt America/Port_of_Spain tv
	Pacific/Funafuti tw Asia/Taipei tz Africa/Dar_es_Salaam ua Europe/Kyiv ug Africa/Kampala us
	America/New_York America/Chicago America/Denver America/Phoenix America/Los_Angeles
	America/Anchorage America/Adak Pacific/Honolulu uy America/Montevideo uz Asia/Samarkand va
	Europe/Vatican vc America/St_Vincent ve America/Caracas vg America/Tortola vi
	America/St_Thomas vn Asia/Ho_Chi_Minh vu Pacific/Efate wf Pacific/Wallis ws Pacific/Apia xk
	Europe/Belgrade ye Asia/Aden yt Indian/Mayotte za Africa/Johannesburg zm Africa/Lusaka zw
	Africa/Harare
`
