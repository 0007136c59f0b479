import Foundation
import Testing
import Wire

@testable import NotificationHubs

@Suite("Registrations")
struct RegistrationTests {
  static let now = Date(timeIntervalSince1970: 1_893_837_600)  // 2030-01-05T10:00:00Z

  @Test("every recorded entry reads and prints back byte for byte")
  func recordedEntries() throws {
    let documents = try Recording.documents(root: "entry", with: "RegistrationDescription ")
    #expect(documents.count > 30)
    for document in documents {
      let address = try #require(document.between("<id>", "</id>")).unescaped
      let form: Registration.Form = document.contains(".999</Exp") ? .written : .read
      let registration = try Registration.decode(document.utf8)
      let printed = registration.entryXML(
        address: AtomAddress(address), form: form, now: Self.now)
      #expect(printed.withoutTimes == document.withoutTimes)
    }
  }

  @Test("every recorded feed reads and prints back byte for byte")
  func recordedFeeds() throws {
    let documents = try Recording.documents(root: "feed", with: ">Registrations<")
    #expect(documents.count > 30)
    for document in documents {
      let address = try #require(document.between("<id>", "</id>")).unescaped
      let next = document.between("&amp;continuationtoken=", "\"/><entry")
      let page = try Registration.decodeFeed(document.utf8)
      let printed = Registration.feedXML(
        page, address: AtomAddress(address),
        next: document.contains("rel=\"next\"") ? next?.percentDecoded : nil, now: Self.now)
      #expect(printed.withoutTimes == document.withoutTimes)
    }
  }

  static let headers = ["X-WNS-Type": "wns/toast"]
  static let all: [Registration] = PushPlatform.allCases.flatMap { platform in
    let channel: PushChannel =
      switch platform {
      case .apns: .handle("0A1B")
      case .wns, .mpns: .handle("https://some.url/a?b&c")
      case .baidu: .baidu(userID: "my-user%1", channelID: "a-channel")
      case .browser: .subscription(endpoint: "https://push/1", p256dh: "p+/=", auth: "a")
      default: .handle("id:1<2")
      }
    var template = PushTemplate(
      body: #"{"a":"$(x) ]]> <&"}"#, headers: platform == .wns ? headers : [:])
    if platform == .mpns {
      template.body = "<n:Notification xmlns:n='WPNotification'><n:Tile/></n:Notification>"
    }
    if platform == .apns {
      template.applePriority = "$(p)"
      template.expiry = "0"
      template.headers["apns-push-type"] = "alert"
    }
    if platform == .baidu { template.baiduMessageType = "1" }
    let native = Registration(
      platform: platform, channel: channel, tags: ["a", "b:é"], pushVariables: ["k": "\"<v>\""],
      secondaryTileName: platform == .wns ? "tile" : nil)
    var other = native
    other.kind = .template(template, name: "Main <1>")
    return [native, other]
  }

  @Test("every platform survives the way to the hub and back", arguments: all)
  func roundTrip(registration: Registration) throws {
    let sent = try Registration.decodeRequest(registration.requestXML.utf8)
    #expect(sent == registration)
    var stored = sent
    stored.registrationID = "1-2-3"
    stored.etag = "7"
    stored.expirationTime = Self.now
    let reply = stored.entryXML(
      address: AtomAddress("https://h/hub/registrations/1-2-3"), form: .read, now: Self.now)
    #expect(try Registration.decode(reply.utf8) == stored)
    let line = stored.descriptionXML(form: .read)
    #expect(try Registration.decode(line.utf8) == stored)
    #expect(!line.contains("\n"))
    let imported = try Registration.decode(stored.importLine.utf8)
    #expect(imported.registrationID == "1-2-3" && imported.etag == "7")
    // A .NET client names the abstract type.
    let name = sent.platform.registrationPrefix + (sent.template == nil ? "" : "Template")
    let abstract = registration.requestXML
      .replacing(
        "<\(name)RegistrationDescription",
        with: "<RegistrationDescription i:type='\(name)RegistrationDescription'"
      )
      .replacing("</\(name)RegistrationDescription", with: "</RegistrationDescription")
    #expect(try Registration.decodeRequest(abstract.utf8) == registration)
  }

  @Test("members stand in the documented order")
  func order() throws {
    let apple = try #require(Self.all.first { $0.platform == .apns && $0.template != nil })
    let names = apple.descriptionXML(form: .written).matches(of: #/<([A-Za-z]+)[ >\/]/#)
      .map { String($0.1) }
    #expect(
      names == [
        "AppleTemplateRegistrationDescription", "ETag", "ExpirationTime", "Tags",
        "PushVariables", "DeviceToken", "BodyTemplate", "Expiry", "TemplateName", "Priority",
        "ApnsHeaders", "ApnsHeader", "Header", "Value",
      ])
    let baidu = try #require(Self.all.first { $0.platform == .baidu && $0.template != nil })
    let text = baidu.descriptionXML(form: .read)
    #expect(text.contains("<BaiduUserId>my-user%1</BaiduUserId><BaiduChannelId>a-channel<"))
    #expect(text.contains("</TemplateName><MessageType>1</MessageType></Baidu"))
    #expect(text.contains("]]]]><![CDATA[>"))
  }

  @Test("times end as each kind of reply has them")
  func expiration() {
    func text(_ registration: Registration, _ form: Registration.Form) -> String? {
      registration.descriptionXML(form: form).between("<ExpirationTime>", "<")
    }
    var registration = Registration(platform: .adm, channel: .handle("x"))
    #expect(text(registration, .written) == "9999-12-31T23:59:59.999")
    #expect(text(registration, .read) == "9999-12-31T23:59:59.999Z")
    registration.expirationTime = Self.now
    #expect(text(registration, .written) == "2030-01-05T10:00:00.000Z")
    registration.tags = [.installation("i"), "a"]
    #expect(text(registration, .read) == "2030-01-05T10:00:00.0000000Z")
    registration.expirationTime = nil
    #expect(text(registration, .written) == "9999-12-31T23:59:59.9999999Z")
  }

  static let lenient = [
    // Declaration, mark, indentation, Atom children, escaped text, any order, single quotes.
    """
    \u{FEFF}<?xml version="1.0" encoding="utf-16"?>
    <entry xmlns='http://www.w3.org/2005/Atom'>
      <title type='text'/><id/><updated>2030-01-05T10:00:00Z</updated><author/>
      <content type='text/xml'>
        <GcmTemplateRegistrationDescription xmlns='x' xmlns:i='y'>
          <BodyTemplate>{&quot;a&quot;:&quot;b&quot;}</BodyTemplate>
          <TemplateName i:nil='true'/>
          <GcmRegistrationId>
            id </GcmRegistrationId>
          <Unknown>x</Unknown>
          <Tags> a, b </Tags><ETag>9</ETag><RegistrationId>mine</RegistrationId>
          <ExpirationTime>2031-01-01T00:00:00Z</ExpirationTime>
        </GcmTemplateRegistrationDescription>
      </content>
    </entry>
    """,
    // Prefixes, the abstract root, CDATA, no Atom.
    """
    <q:RegistrationDescription xmlns:q="x" xmlns:xsi="y" \
    xsi:type="q:GcmTemplateRegistrationDescription"><q:RegistrationId xsi:nil="1"/>\
    <q:Tags><![CDATA[a,b]]></q:Tags><q:GcmRegistrationId>id</q:GcmRegistrationId>\
    <q:BodyTemplate><![CDATA[{"a":"b"}]]></q:BodyTemplate></q:RegistrationDescription>
    """,
  ]

  @Test("requests are read in every form that clients send", arguments: lenient)
  func leniency(text: String) throws {
    let registration = try Registration.decodeRequest(text.utf8)
    #expect(
      registration
        == Registration(
          platform: .gcm, channel: .handle("id"),
          kind: .template(PushTemplate(body: #"{"a":"b"}"#), name: nil), tags: ["a", "b"]))
  }

  static func apple(_ members: String, template: Bool = false) -> String {
    let name = "Apple\(template ? "Template" : "")RegistrationDescription"
    return "<entry><content><\(name)>\(members)</\(name)></content></entry>"
  }

  static let invalid = "The specified resource description is invalid."
  static let badTag = ". Valid tag characters are alphanumeric, _, @, -, ., : and #"

  @Test(
    "what a hub does not take is refused in the words of the service",
    arguments: [
      ("<FcmRegistrationDescription/>", invalid), ("", invalid), ("<entry/>", invalid),
      ("<entry><content>", invalid), (apple(""), invalid), ("<RegistrationDescription/>", invalid),
      (apple("<DeviceToken i:nil='true'/>"), invalid),
      (apple("<DeviceToken> </DeviceToken>"), invalid),
      (apple("<DeviceToken>0A</DeviceToken>", template: true), invalid),
      (apple("<DeviceToken>0A</DeviceToken><Tags>$x</Tags>"), "Tags can not start with $"),
      (
        apple("<DeviceToken>0A</DeviceToken><Tags>a, $InstallationId:{x}</Tags>"),
        "Tags can not start with $"
      ),
      (
        apple("<DeviceToken>0A</DeviceToken><Tags>a,,b</Tags>"),
        "An invalid tag(s) 'a,,b' was supplied\(badTag)"
      ),
      (
        apple("<DeviceToken>0A</DeviceToken><Tags>a b</Tags>"),
        "An invalid tag(s) 'a b' was supplied\(badTag)"
      ),
    ])
  func refusals(text: String, message: String) {
    #expect(throws: WireFormatError(message)) { try Registration.decodeRequest(text.utf8) }
  }

  static let faulty: [Registration] = [
    Registration(platform: .apns, channel: .handle("0A1")),
    Registration(platform: .apns, channel: .handle("XY")),
    Registration(platform: .wns, channel: .handle("some.url")),
    Registration(platform: .mpns, channel: .handle("https://")),
    Registration(platform: .adm, channel: .handle(" ")),
    Registration(platform: .baidu, channel: .handle("user")),
    Registration(platform: .browser, channel: .handle("https://push/1")),
    Registration(
      platform: .gcm, channel: .subscription(endpoint: "https://a", p256dh: "p", auth: "a")),
    Registration(
      platform: .browser, channel: .subscription(endpoint: "https://a", p256dh: "", auth: "a")),
    Registration(platform: .browser, channel: .subscription(endpoint: "a", p256dh: "p", auth: "a")),
    Registration(
      platform: .adm, channel: .handle("x"), tags: (0...60).map { Tag(rawValue: "t\($0)") }),
    template(.adm, "<x/>"), template(.adm, "{}", name: String(repeating: "n", count: 201)),
    template(.apns, "{}", ["X-Other": "1"]), template(.apns, "{}", ["apns-topic": " "]),
    template(.wns, "<toast/>"), template(.wns, "<other/>", headers),
    template(.wns, "text", headers), template(.wns, "<toast>", headers),
    template(.mpns, "<Notification/>"),
    template(.mpns, "<w:Notification xmlns:w='WPNotification'/>"),
    template(.mpns, "<w:Notification xmlns:w='other'><w:Toast/></w:Notification>"),
  ]

  static func template(
    _ platform: PushPlatform, _ body: String, _ headers: [String: String] = [:], name: String = "n"
  ) -> Registration {
    let handle = platform == .apns ? "0A" : "https://a/"
    return Registration(
      platform: platform, channel: .handle(handle),
      kind: .template(PushTemplate(body: body, headers: headers), name: name))
  }

  @Test("rules of the platforms are checked", arguments: faulty)
  func validation(registration: Registration) {
    #expect(throws: WireFormatError.self) { try registration.validated() }
  }

  @Test(
    "what only looks odd is taken",
    arguments: [
      template(.wns, "{\"a\":1}", headers), template(.wns, "<other/>", ["x-wns-type": "wns/raw"]),
      template(.wns, "<?xml version='1.0' encoding='utf-16'?><badge value='1'/>", headers),
      template(.mpns, "raw", ["X-NotificationClass": "3"]), template(.adm, " {}"),
      template(.mpns, "<Notification xmlns='WPNotification'><Toast/></Notification>"),
    ])
  func oddities(registration: Registration) throws {
    _ = try registration.validated()
  }

  @Test("Apple tokens get upper case, tags lose their second spelling")
  func normalized() throws {
    let registration = try Registration(
      platform: .apns, channel: .handle("0a1b"), tags: [" News", "news"]
    ).validated()
    #expect(registration.channel == .handle("0A1B"))
    #expect(registration.tags.map(\.rawValue) == ["News"])
  }
}
