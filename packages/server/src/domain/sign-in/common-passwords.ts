/**
 * The most common passwords of at least eight characters in published leaks, in lower case. Attackers try
 * these first.
 */
const words = `
  0.0.0.000 00000000 01011910 01011970 01011975 01011977 01011980 01011981 01011982 01011983 01011984
  01011985 01011986 01011987 01011988 01011989 01011990 01011991 01011992 01011993 01011999 01012000 01012001
  01012010 01012011 01020304 01091989 02011985 02011986 02011987 02021984 02021985 02021986 02021987 02021988
  02031984 02031986 02041984 02041986 02051986 02061985 02061986 02061989 02071982 02071986 02081984 02081987
  02081988 02081989 02091986 02091987 02101985 03082006 0987654321 10203040 1029384756 11111111 11112222
  111222333 11223344 1122334455 11235813 1123581321 12011987 12121212 12131415 12312312 123123123 1232323q
  123321123 12341234 12344321 123454321 1234554321 123456654321 12345678 123456789 1234567890 1234567890a
  1234567890q 12345678910 123456789a 123456789q 123456789z 12345678a 12345678q 12345679 1234567a 1234567q
  123456aa 123456qw 123456qwerty 12345qwe 12345qwert 1234abcd 1234qwer 123654789 12369874 123698745 123789456
  123qq123 123qwe123 123qweasd 123qweasdzxc 123qwerty 12qw34er 12qwaszx 13243546 135792468 1357924680
  14725836 147258369 147852369 14789632 147896325 15426378 18436572 192837465 19411945 1a2b3c4d 1passwor
  1q2w3e4r 1q2w3e4r5 1q2w3e4r5t 1q2w3e4r5t6y 1qa2ws3ed 1qaz2wsx 1qaz2wsx3edc 1qazxsw2 1x2zkg8w 21031988
  22222222 25802580 31415926 321654987 33333333 44444444 4815162342 55555555 66666666 73501505 741852963
  77777777 78945612 789456123 7ugd5hip2j 87654321 88888888 8j4ye3uz 963852741 987456321 987654321 99999999
  a1234567 a12345678 a123456789 a1b2c3d4 a1s2d3f4 aa123456 aardvark abc12345 abcd1234 abcdefgh aberdeen
  access14 achilles adgjmptw admin123 admin1234 administrator agent007 airborne airforce airplane albatros
  alejandr aleksandr aleksandra alexande alexandr alphabet america1 amsterda amsterdam anaconda andromeda
  anhyeuem anthony1 apollo13 apple123 applepie aquarius armagedon arsenal1 asdf1234 asdfasdf asdfghjk
  asdfghjkl asdfzxcv ashley123 aspirine atlantis australi autumn2024 avalanch azsxdcfv babyblue babydoll
  babyface babygirl babylon5 babylove backdoor balloons barcelon barcelona barefoot baseball baseball1
  basketba batman123 bcfields beautifu beefcake bigballs bigdaddy bigmoney billybob billyboy binladen
  blackbir blackcat blackdog blackhaw blackjac blackjack blackout blahblah blessing blink182 blizzard
  bluebird blueeyes bluefish bluemoon bobafett bobdylan bollocks bonehead bookworm boomboom borussia brandon1
  brighton brooklyn brucelee buckeyes buckshot budlight budweise bulldog1 bulldogs bullfrog bullseye bunghole
  buttercu butterfl butterfly butthead butthole cadillac caliente californ caligula cambiami cameltoe
  cameron1 candyman cannabis capslock cardinal carolina carpedie casanova catherin cavalier cdtnkfyf cerberus
  cfitymrf chainsaw champion changeme changeme1 changeme123 chargers charles1 charlie1 charlott charlton
  checkers chelsea1 cherokee chester1 chevelle chevrole cheyenne chicago1 chicken1 chickens chocolat chrisbln
  christia christin christop chrysler chuckles cinnamon cjkysirj clarinet claymore clevelan clitoris cocacola
  colombia colorado coltrane commando company123 computer computer1 concrete consumer cooldude corleone
  corvette cosworth cowboys1 crazybab creampie creative crjhgbjy crusader crystal1 daniel123 dannyboy
  darkness darkside darkstar dbrnjhbz deadhead deadpool deepthroat deeznuts deeznutz default1 defender
  deftones designer devil666 devildog dfktynbyf diamond1 diamonds dietcoke digital1 dilligaf dingdong
  dinosaur dirtbike discover dkflbckfd dkflbvbh doberman dodgeram doghouse dolphin1 dolphins doughboy
  dragon12 dragon123 dragonba dragonball drowssap drpepper dthjybrf dutchess eastside einstein ekaterina
  electric electron elephant elizabet elizaveta engineer enterpri enterprise ericsson eternity excalibu
  explorer facebook1 farscape ferrari1 fireball firebird fishing1 fktrcfylh fktrcfylhf flamingo flexible
  florida1 flounder football football1 fordf150 formula1 francesc freckles freedom1 freepass freeuser
  front242 frontier fyfcnfcbz fyutkbyf gabriel1 gabriell gamecube gameover gandalf1 gangbang gangster
  garfield gargoyle gateway1 gatorade geronimo gesperrt getmoney gfhjkm123 ghbdtnbr ghblehjr ghjcnjnfr
  ghostrider gladiator gn56gn56 godfathe godfather godsmack godzilla goldfish goldstar goldwing golfball
  goodluck goodtime google123 gordon24 gotohell greatone greenbay greenday guardian guest123 guinness
  halflife handyman hannibal happy123 happyday hardcore hardrock hawaiian hawkeyes hayabusa heather1 hedgehog
  heineken hellfire hello123 hello1234 helloworld hellyeah hercules highland hollywoo hongkong hoosiers
  hotstuff hurrican hyperion icecream idontkno idontknow ihateyou illusion iloveyou iloveyou1 immortal
  infiniti infinity internet internet1 intrepid intruder inuyasha istanbul jackson1 jackson5 james007
  jamesbon jamesbond jasmine1 jennifer1 jessica1 johannes jordan23 justdoit juventus kamikaze kangaroo
  karolina katerina kawasaki kcj9wx5n kenworth keyboard keystone killbill killer123 kingfish kingkong
  kingston kittycat kittykat kleopatra knickers labrador lacrosse lancelot lasvegas leavemealone letmein1
  letmein123 letmein2 lifehack lightnin lightning lineage2 lionking liverpoo liverpool logitech lokomotiv
  lollipop lonestar lonewolf longhorn loverboy loveyou1 lowrider luckydog macdaddy madison1 magicman
  mailcreated5240 majestic makaveli mamapapa manchest manchester mandarin mandingo maradona marathon mariners
  marino13 marlboro maryjane master123 matthew1 maverick mazafaka meatball meathead meatloaf mechanic
  megadeth megapass megatron melissa1 meowmeow mercedes meridian mersedes metallic metallica michael1
  michigan microlab microsof microsoft midnight millwall minecraft minecraft1 mistress mollydog monalisa
  moneyman mongoose monkey123 monopoly monster1 montgom240 montreal moonlight morpheus mortgage mortimer
  motherlode motorola mountain multiplelo munchkin mushroom musicman mustang1 mustangs ncc1701a ncc1701d
  ncc1701e nebraska newcastl newpass6 newyork1 nicole123 nintendo nokia6300 nuttertools nwo4life oblivion
  operator overkill overlord p0015123 p@ssw0rd p@ssword pa55w0rd pa55word packers1 paintbal paintball
  pakistan panasoni panasonic panther1 panthers pantyhos paradise pass1234 passport passw0rd passwor1
  password password! password1 password12 password123 password2 password2024 password2025 password2026
  passwords passwort patrick1 patriots pavilion pearljam peekaboo penguins penthous peterpan philippe
  phillies phoenix1 pianoman pineappl pingpong pinkfloy platinum playstation playtime plymouth poiuytrewq
  pokemon1 pokemon123 polniypizdec0211 poohbear poontang porkchop porsche1 porsche9 portland portugal
  poseidon preacher precious predator presario princess princess1 punisher punkrock q1w2e3r4 q1w2e3r4t5
  q1w2e3r4t5y6 qawsedrf qazwsx12 qazwsx123 qazwsxed qazwsxedc qazwsxedcrfv qazxswedc qweasd123 qweasdzxc
  qwer1234 qwerasdf qwert123 qwerty12 qwerty123 qwerty1234 qwerty12345 qwerty123456 qwertyui qwertyuio
  qwertyuiop r2d2c3po ragnarok raiders1 raistlin rammstein rangers1 rasputin rastaman realmadrid rebecca1
  redalert redskins redwings renegade rfnthbyf rhbcnbyf rhfcjnrf rhtdtlrj richard1 rightnow rjirfrgbde
  rjycnfynby roadkill roadking roadrunn robert123 robotech rockford rockhard rockstar rolltide romashka
  root1234 rootbeer runescape rush2112 sailboat salamander samantha samsung1 sandiego sapphire saratoga
  satan666 scarface scoobydo scooter1 scorpio1 scorpion scotland seahawks sebastia secret123 security
  seinfeld seminole semperfi sentinel septembe serenity sersolution shadow123 shamrock shaney14 shannon1
  sherlock showtime silverad simpsons sinister sithlord skittles skorpion skywalke skywalker slapshot
  slipknot slippery slipway1 slipway123 smeghead sneakers snickers snoopdog snowball snowboar snuggles
  socrates softball software sojdlg123aljg soso123aljg southpar southpark spaceman spanking spartans spectrum
  spiderma spiderman spitfire splinter spongebob spring2024 spring2025 spring2026 squirrel srinivas stallion
  starbuck starcraf starcraft stardust starfire starfish stargate starship startrek starwars starwars1
  steelers stephani stingray stocking stonecol stonecold stranger stripper summer2024 summer2025 summer2026
  sundance sunflowe sunflower sunnyday sunshine sunshine1 super123 superfly superman superman1 supersta
  superstar svetlana sweetpea swimming swordfis swordfish syncmaster syracuse tacobell talisman tarheels
  tazmania technics teddybea teddybear terminator terrapin test1234 testtest thailand thanatos thankyou
  thedoors thegreat thirteen thomas123 thuglife thunder1 thunderb tiberius tiffany1 tinkerbell titanium
  titleist tommyboy toor1234 tottenha tottenham translator traveler treasure trfnthbyf triangle trombone
  truelove trustno1 tunafish turkey50 twilight ultimate umbrella underdog undertaker vacation valentin
  valentina valhalla valkyrie vanhalen vasilisa verbatim veronika vfhufhbnf vfrcbvrf vfvfgfgf viewsonic
  viktoria vkontakte vladimir vladislav warcraft wareagle warhammer warriors waterloo webmaste webmaster
  welcome1 welcome123 welcome2024 welcome2025 welcome2026 werewolf westside westwood whatever whatever1
  whiskers whitesox whocares wildcats wildfire william1 winston1 winter2024 winter2025 winter2026 wishbone
  wolfgang wolfpack wolverin wolverine woofwoof wordpass wrangler wrestlin wrinkle1 yankees1 yfcntymrf
  yosemite z1x2c3v4 zaq12wsx zaq1xsw2 zeppelin zerocool zxasqw12 zxcasdqwe zxcv1234 zxcvbnm1 zxcvbnm123
`

const common = new Set(words.split(/\s+/))

/** Ignores the letter case. */
export const isCommonPassword = (password: string): boolean => common.has(password.toLowerCase())
