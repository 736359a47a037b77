package scan

import "strings"

// alike are letters of other alphabets, each after the Latin letter that it is
// taken for.
const alike = `a:аαɑаᴀ b:ЬВβʙвᏴ c:сϲᴄСⅽⲥ d:ԁɗᴅԀժᏧ e:еєεᴇҽЕΕеᏋ f:ғƒꜰϝ g:ɡɢԌցᏀ h:һʜНΗհᏂ i:іɩɪιıІΙӏⅰᎥ j:јϳᴊЈյ k:кκᴋКΚᏦ l:ⅼʟⳑᏞ` +
	` m:мᴍМΜⅿᎷ n:ոɴпηΝռ o:оοᴏσОΟօഠⲟ p:рρᴘРΡⲣᏢ q:ԛգϙ r:гᴦʀгᎡ s:ѕꜱЅՏᏚ t:тτᴛТΤᎢ u:υսᴜцʋ v:νѵᴠѴᏙ w:ԝᴡшωԜᎳ x:хχХΧⅹ y:уγʏУΥүҮ z:ᴢΖᏃʐ` +
	` A:АΑ B:Β D:Ꭰ G:Ԍ L:Լ Z:Ζ S:Ѕ`

// Letters in frames, with no normal form of Unicode's.
var framed = []struct{ first, last rune }{{0x1F150, 0x1F169}, {0x1F170, 0x1F189}, {0x1F1E6, 0x1F1FF}, {0x1F130, 0x1F149}}

var confusables = func() map[rune]rune {
	table := map[rune]rune{}
	for _, entry := range strings.Fields(alike) {
		latin, others, _ := strings.Cut(entry, ":")
		for _, r := range others {
			table[r] = rune(latin[0])
		}
	}
	for _, f := range framed {
		for r := f.first; r <= f.last; r++ {
			table[r] = 'a' + r - f.first
		}
	}
	for r, plain := range map[rune]rune{
		'‘': '\'', '’': '\'', 'ʼ': '\'', '′': '\'', '“': '"', '”': '"', '«': '"', '»': '"', '„': '"', '‐': '-', '‑': '-', '‒': '-',
		'–': '-', '—': '-', '−': '-', '。': '.', '，': ',', '！': '!', '：': ':', '；': ';', '⁄': '/', '∕': '/', '․': '.', 'ⅼ': 'l',
	} {
		table[r] = plain
	}
	return table
}()

// confusable gives the Latin letter or plain sign that a character is taken
// for; 0 when it is none.
func confusable(r rune) rune { return confusables[r] }
