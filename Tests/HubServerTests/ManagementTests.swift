import HTTPServer
import HubCore
import HubServer
import NotificationHubs
import Testing

@Suite("Hub management over HTTP")
struct ManagementTests {
  static let root = TestHub.token(
    resource: "https://\(TestHub.host)/", name: "RootManageSharedAccessKey", key: TestHub.rootKey)
  static let listen = TestHub.token(name: TestHub.listenName, key: TestHub.listenKey)

  static func entry(_ members: String) -> String {
    """
    <?xml version="1.0" encoding="utf-8"?>
    <entry xmlns="http://www.w3.org/2005/Atom">
      <content type="application/atom+xml;type=entry;charset=utf-8">
        <NotificationHubDescription xmlns:i="http://www.w3.org/2001/XMLSchema-instance" \
    xmlns="http://schemas.microsoft.com/netservices/2010/10/servicebus/connect">\(members)\
    </NotificationHubDescription>
      </content>
    </entry>
    """
  }

  static func rule(_ name: String, _ rights: [String], key: String? = nil) -> String {
    let rights = rights.map { "<AccessRights>\($0)</AccessRights>" }.joined()
    return "<AuthorizationRule i:type=\"SharedAccessAuthorizationRule\"><KeyName>\(name)</KeyName>"
      + (key.map { "<PrimaryKey>\($0)</PrimaryKey>" } ?? "")
      + "<Rights>\(rights)</Rights></AuthorizationRule>"
  }

  static func rules(_ rules: String...) -> String {
    "<AuthorizationRules>\(rules.joined())</AuthorizationRules>"
  }

  static let refused: [(String, String)] = [
    ("", "The specified resource description is invalid."),
    ("<a/>", "The specified resource description is invalid."),
    ("<entry", "The specified resource description is invalid."),
    (entry("<RegistrationTtl>PT23H</RegistrationTtl>"), "one day"),
    (entry("<RegistrationTtl>soon</RegistrationTtl>"), "duration"),
    (entry("<UserMetadata>\(String(repeating: "x", count: 1025))</UserMetadata>"), "1024"),
    (entry(rules(rule("a", ["Manage"]))), "Manage"),
    (entry(rules(rule("a", []))), "right"),
    (entry(rules(rule("a", ["Listen", "Listen"]))), "twice"),
    (entry(rules(rule("a", ["Fly"]))), "right"),
    (entry(rules(rule("a b", ["Listen"]))), "URL-safe"),
    (entry(rules(rule("a", ["Listen"], key: "c2hvcnQ="))), "32 bytes"),
    (entry(rules(rule("a", ["Listen"]), rule("A", ["Send"]))), "same"),
    (
      entry(
        "<AuthorizationRules>"
          + (1...13).map { rule("r\($0)", ["Listen"]) }.joined() + "</AuthorizationRules>"),
      "at most 12"
    ),
    (entry("<Status>maybe</Status>"), "The specified resource description is invalid."),
    (entry("<Status/>"), "The specified resource description is invalid."),
    (
      entry("<GcmCredential><Properties/></GcmCredential>"),
      "'GcmCredential' must have the property 'GoogleApiKey'."
    ),
  ]

  @Test("a description that no hub can have is 400 with its reason", arguments: refused)
  func refusal(body: String, reason: String) async throws {
    let hub = try await TestHub(hubs: [])
    let reply = await hub.send(.put, "/news?api-version=2017-04", body: body, token: Self.root)
    #expect(reply.status == .badRequest)
    #expect(reply.message?.contains(reason) == true, "\(reply.message ?? "nothing")")
    #expect(try await hub.store.hub(named: "news") == nil)
  }

  @Test("the caller's rules win where the defaults find no room", arguments: 10...12)
  func manyRules(count: Int) async throws {
    let hub = try await TestHub(hubs: [])
    let rules = (1...count).map { Self.rule("r\($0)", ["Listen"]) }.joined()
    let reply = await hub.send(
      .put, "/news", body: Self.entry("<AuthorizationRules>\(rules)</AuthorizationRules>"),
      token: Self.root)
    #expect(reply.status == .created)
    let defaults =
      count > 10 ? [] : ["DefaultListenSharedAccessSignature", "DefaultFullSharedAccessSignature"]
    let found = try HubDescription.decode(reply.text.utf8, name: "?")?.authorizationRules
    #expect(found?.map(\.keyName) == defaults + (1...count).map { "r\($0)" })
  }

  @Test("a name that no hub can have is 400", arguments: ["1hub", "-hub", "h%20b", "h%C3%A4b"])
  func badName(name: String) async throws {
    let hub = try await TestHub(hubs: [])
    let reply = await hub.send(.put, "/\(name)", body: Self.entry(""), token: Self.root)
    #expect(reply.status == .badRequest)
  }

  @Test("all of a description is kept, in any order of its members")
  func everything() async throws {
    try await withHub(hubs: []) { hub in
      func credential(_ name: String, _ properties: [(String, String)]) -> String {
        let list = properties.map {
          "<Property><Name>\($0.0)</Name><Value>\($0.1)</Value></Property>"
        }
        return "<\(name)Credential><Properties>\(list.joined())</Properties></\(name)Credential>"
      }
      let credentials = [
        credential("Apns", [("token", "T"), ("KeyId", "K"), ("AppId", "A"), ("AppName", "N")]),
        credential("Wns", [("PackageSid", "ms-app://s"), ("SecretKey", "s")]),
        credential("Gcm", [("GoogleApiKey", "g")]),
        credential("Mpns", []),
        credential("Adm", [("ClientId", "c"), ("ClientSecret", "s")]),
        credential("Baidu", [("BaiduApiKey", "b"), ("BaiduSecretKey", "s")]),
        credential(
          "FcmV1", [("PrivateKey", "p"), ("ProjectId", "i"), ("ClientEmail", "a@b")]),
        credential(
          "Browser", [("Subject", "mailto:a@b"), ("VapidPublicKey", "p"), ("VapidPrivateKey", "q")]),
        credential("Xiaomi", [("AppSecret", "x")]),
      ]
      let key = TestHub.fullKey
      let body = Self.entry(
        credentials.reversed().joined() + "<UserMetadata>ours &amp; theirs</UserMetadata>"
          + Self.rules(Self.rule("own", ["Send", "Manage", "Listen"], key: key))
          + "<RegistrationTtl>P90D</RegistrationTtl>")
      let created = await hub.send(
        .put, "/News", headers: ["Belfry-Extensions": "true"], body: body, token: Self.root)
      #expect(created.status == .created)
      #expect(created.headers["ETag"] == nil)
      let read = await hub.send(
        .get, "/news", headers: ["Belfry-Extensions": "true"], token: Self.root)
      #expect(read.status == .ok)
      for text in [created.text, read.text] {
        let found = try #require(try HubDescription.decode(text.utf8, name: "?"))
        #expect(found.name == "News")
        #expect(found.registrationTTL == 7_776_000)
        #expect(found.userMetadata == "ours & theirs")
        #expect(
          found.authorizationRules?.map(\.keyName) == [
            "DefaultListenSharedAccessSignature", "DefaultFullSharedAccessSignature", "own",
          ])
        #expect(found.authorizationRules?.last?.primaryKey == key)
        #expect(Set(found.credentials.keys) == Set(PushPlatform.allCases))
        #expect(found.credentials[.apns]?.properties["Token"] == "T")
        #expect(found.credentials[.mpns]?.properties == [:])
        #expect(!found.isDisabled)
      }
      // The members stand in the order that .NET reads them in.
      let names = [
        "<ApnsCredential>", "<RegistrationTtl>", "<WnsCredential>", "<AuthorizationRules>",
        "<GcmCredential>", "<MpnsCredential>", "<UserMetadata>", "<AdmCredential>",
        "<BaiduCredential>", "<FcmV1Credential>", "<BrowserCredential>", "<XiaomiCredential>",
      ]
      let places = names.map { read.text.firstRange(of: $0)?.lowerBound }
      #expect(!places.contains(nil))
      #expect(places.compactMap { $0 } == places.compactMap { $0 }.sorted())
      // The key that came with the description opens the hub.
      let own = TestHub.token(resource: "https://\(TestHub.host)/news", name: "own", key: key)
      #expect(await hub.send(.get, "/news", token: own).status == .ok)
    }
  }

  @Test(
    "an update replaces the description and keeps rules that it does not mention")
  func update() async throws {
    try await withHub { hub in
      let first = Self.entry(
        "<UserMetadata>one</UserMetadata><GcmCredential><Properties><Property>"
          + "<Name>GoogleApiKey</Name><Value>g</Value></Property></Properties></GcmCredential>"
          + "<RegistrationTtl>P2D</RegistrationTtl>")
      let headers: HTTPHeaders = ["If-Match": "*"]
      #expect(await hub.send(.put, "/hub1", headers: headers, body: first).status == .ok)
      let second = await hub.send(
        .put, "/hub1", headers: headers, body: Self.entry("<Status>true</Status>"))
      let found = try #require(try HubDescription.decode(second.text.utf8, name: "?"))
      #expect(found.userMetadata == nil)
      #expect(found.registrationTTL == nil)
      #expect(found.credentials.isEmpty)
      #expect(found.isDisabled)
      #expect(found.authorizationRules?.last?.primaryKey == TestHub.fullKey)
      #expect(!second.text.contains("<published>"))
      // Disabled: no devices, no sends; its owner can still read it and switch it on.
      let send = await hub.send(
        .post, "/hub1/messages", headers: ["ServiceBusNotification-Format": "template"],
        body: "{}")
      #expect(send.status == .forbidden)
      #expect(await hub.send(.get, "/hub1").status == .ok)
      let third = Self.entry(Self.rules(Self.rule(TestHub.fullName, ["Listen", "Send", "Manage"])))
      let on = await hub.send(.put, "/hub1", headers: headers, body: third)
      #expect(on.status == .ok)
      let rules = try HubDescription.decode(on.text.utf8, name: "?")?.authorizationRules
      #expect(rules?.map(\.keyName) == [TestHub.fullName])
      // A rule without keys keeps those it had.
      #expect(rules?.first?.primaryKey == TestHub.fullKey)
      #expect(await hub.send(.get, "/hub1/installations/x").status == .notFound)
    }
  }

  /// A credential as the original writes it.
  private static func credential(_ name: String, _ properties: [String: String]) -> String {
    let list = properties.sorted { $0.key < $1.key }.map {
      "<Property><Name>\($0.key)</Name><Value>\($0.value)</Value></Property>"
    }
    return "<\(name)Credential><Properties>\(list.joined())</Properties></\(name)Credential>"
  }

  private static let extended: HTTPHeaders = ["Belfry-Extensions": "true", "If-Match": "*"]

  private static let ownNames = [
    "OtherEndpoint", "BroadcastEndpoint", "Xiaomi", "TenantId", "PrivateKeyId", "TokenUri",
    "AuthTokenUrl", "SendUrlTemplate",
  ]

  @Test(
    "what the original does not have is shown to clients that read it only, in every reply")
  func extensions() async throws {
    try await withHub { hub in
      let own = Self.entry(
        [
          Self.credential(
            "Apns",
            [
              "Token": "T", "KeyId": "K", "AppId": "A", "AppName": "N",
              "Endpoint": "https://api.push.apple.com:443/3/device",
              "OtherEndpoint": "none", "broadcastendpoint": "https://b.example",
            ]),
          Self.credential(
            "Wns", ["TenantId": "t", "ClientId": "c", "ClientSecret": "s"]),
          Self.credential(
            "FcmV1",
            [
              "PrivateKey": "p", "ProjectId": "i", "ClientEmail": "a@b", "PrivateKeyId": "1",
              "TokenUri": "https://t.example", "Endpoint": "https://f.example",
            ]),
          Self.credential(
            "Adm",
            [
              "ClientId": "c", "ClientSecret": "s", "AuthTokenUrl": "https://a.example/t",
              "SendUrlTemplate": "https://a.example/{0}",
            ]),
          Self.credential("Xiaomi", ["AppSecret": "x"]),
        ].joined())
      let written = await hub.send(.put, "/hub1", headers: Self.extended, body: own)
      #expect(written.status == .ok)
      for name in Self.ownNames { #expect(written.text.contains(name), "\(name)") }
      let headers: HTTPHeaders = ["If-Match": "*"]
      let read = await hub.send(.get, "/hub1?api-version=2020-06")
      let list = await hub.send(.get, "/$Resources/NotificationHubs", token: Self.root)
      // A client of the original reads, changes and writes back: nothing that it cannot see goes.
      let shown = try #require(try HubDescription.decode(read.text.utf8, name: "hub1"))
      var changed = shown
      changed.userMetadata = "changed"
      let updated = await hub.send(
        .put, "/hub1", headers: headers, body: changed.requestXML)
      #expect(updated.status == .ok && updated.text.contains("changed"))
      for reply in [read, list, updated] {
        #expect(reply.status == .ok && reply.text.contains("<Name>ClientEmail</Name>"))
        for name in Self.ownNames + ["WnsCredential", "https://f.example"] {
          #expect(!reply.text.contains(name), "\(name)")
        }
      }
      let kept = await hub.send(.get, "/hub1", headers: Self.extended)
      for name in Self.ownNames { #expect(kept.text.contains(name), "\(name)") }

      // A credential that it replaces is another one; what it was not shown stays.
      changed.credentials[.apns]?.properties["KeyId"] = "K2"
      changed.credentials[.fcmv1] = nil
      _ = await hub.send(.put, "/hub1", headers: headers, body: changed.requestXML)
      let rotated = await hub.send(.get, "/hub1", headers: Self.extended)
      let found = try #require(try HubDescription.decode(rotated.text.utf8, name: "hub1"))
      #expect(Set(found.credentials.keys) == [.apns, .wns, .adm, .xiaomi])
      #expect(found.credentials[.apns]?.properties["KeyId"] == "K2")
      #expect(found.credentials[.apns]?.properties["OtherEndpoint"] == nil)
      // A client that reads extensions can remove them, too.
      let none = await hub.send(.put, "/hub1", headers: Self.extended, body: Self.entry(""))
      #expect(try HubDescription.decode(none.text.utf8, name: "hub1")?.credentials.isEmpty == true)
    }
  }

  @Test("the literal text null, as the Java SDK writes it, and nothing are no property")
  func nullProperties() async throws {
    let hub = try await TestHub()
    let all = [
      "ApnsCertificate": "null", "CertificateKey": "null", "Endpoint": "https://a.example",
      "Thumbprint": "", "Token": "T", "KeyId": "K", "AppName": "N", "AppId": " A ",
    ]
    let reply = await hub.send(
      .put, "/hub1", headers: Self.extended,
      body: Self.entry(
        Self.credential("Apns", all) + Self.credential("Mpns", ["Thumbprint": "null"])))
    #expect(reply.status == .ok)
    let found = try #require(try HubDescription.decode(reply.text.utf8, name: "hub1"))
    #expect(
      Set((found.credentials[.apns]?.properties ?? [:]).keys) == [
        "Endpoint", "Token", "KeyId", "AppName", "AppId",
      ])
    #expect(found.credentials[.mpns]?.properties == [:])
    let missing = await hub.send(
      .put, "/hub1", headers: Self.extended,
      body: Self.entry(Self.credential("Gcm", ["GoogleApiKey": "NULL"])))
    #expect(missing.message == "'GcmCredential' must have the property 'GoogleApiKey'.")
    // The password of a certificate may be empty.
    let certificate = await hub.send(
      .put, "/hub1", headers: Self.extended,
      body: Self.entry(Self.credential("Wns", ["WnsCertificate": "c", "CertificateKey": ""])))
    #expect(certificate.status == .ok)
  }

  @Test(
    "the author of a hub's entry is the namespace, by default the first part of the host",
    arguments: [
      ("contoso-ns.servicebus.windows.net", nil, "contoso-ns"),
      ("Push.example.com:8443", nil, "push"), ("127.0.0.1:8080", nil, "belfry"),
      ("localhost:8080", nil, "belfry"), ("[::1]:8080", nil, "belfry"),
      ("contoso-ns.servicebus.windows.net", "ours", "ours"),
    ] as [(String, String?, String)])
  func author(host: String, setting: String?, author: String) async throws {
    var configuration = HubAPIConfiguration()
    configuration.namespace = setting
    let hub = try await TestHub(configuration: configuration)
    let token = TestHub.token(resource: "https://\(host)/hub1")
    let reply = await hub.send(.get, "/hub1", token: token, host: host)
    #expect(reply.text.contains("<author><name>\(author)</name></author>"))
  }

  @Test("If-Match is * or nothing, and a missing hub cannot be updated")
  func conditions() async throws {
    let hub = try await TestHub()
    for tag in ["\"3\"", "3", "W/\"3\"", "nonsense"] {
      let reply = await hub.send(
        .put, "/hub1", headers: ["If-Match": tag], body: Self.entry(""))
      #expect(reply.status.rawValue == 412)
    }
    let missing = await hub.send(
      .put, "/other", headers: ["If-Match": "*"], body: Self.entry(""), token: Self.root)
    #expect(missing.status == .notFound)
    #expect(missing.message == "No service is hosted at the specified address.")
  }

  static let manage = "Manage claim is required for this operation."
  static let signature = "InvalidSignature: The token has an invalid signature."
  static let wrong = TestHub.token(key: TestHub.listenKey)
  static let rights: [(HTTPMethod, String, String?, String?, Int, String?)] = [
    // Creating and listing take the namespace's key.
    (.put, "/other", nil, TestHub.token(), 401, signature),
    (
      .put, "/other", nil, TestHub.token(resource: "https://\(TestHub.host)/other"), 401,
      signature
    ),
    (.put, "/hub1", nil, TestHub.token(), 401, manage),
    (.get, "/", nil, TestHub.token(resource: "https://\(TestHub.host)/"), 401, signature),
    (.get, "/$Resources/NotificationHubs", nil, root, 200, nil),
    (.get, "/", nil, nil, 401, "MissingToken"),
    // A hub's own key will do for the hub, if it has Manage.
    (.get, "/hub1", nil, TestHub.token(), 200, nil),
    (.get, "/hub1", nil, listen, 401, manage),
    (.put, "/hub1", "*", listen, 401, manage),
    (.delete, "/hub1", nil, listen, 401, manage),
    // Reading words a bad signature in its own way.
    (.get, "/hub1", nil, wrong, 401, manage),
    (.put, "/hub1", "*", wrong, 401, signature),
    (.delete, "/hub1", nil, wrong, 401, signature),
    (.delete, "/hub1", nil, TestHub.token(), 200, nil),
    (.delete, "/HUB1", nil, root, 200, nil),
    (.delete, "/other", nil, root, 404, "No service is hosted at the specified address."),
    (.post, "/hub1", nil, root, 405, nil),
    (.delete, "/", nil, root, 405, nil),
    (.get, "/hub1?api-version=1999-01", nil, root, 400, "api-version"),
  ]

  @Test(
    "hubs are managed with the right Manage, of the namespace or of the hub",
    arguments: rights)
  func right(
    method: HTTPMethod, target: String, condition: String?, token: String?, status: Int,
    message: String?
  ) async throws {
    let hub = try await TestHub()
    var headers: HTTPHeaders = [:]
    headers["If-Match"] = condition
    let reply = await hub.send(
      method, target, headers: headers, body: method == .put ? Self.entry("") : "", token: token)
    #expect(reply.status.rawValue == status)
    if let message { #expect(reply.message?.contains(message) == true) }
  }

  @Test("the lists name every hub, short and in full")
  func lists() async throws {
    let hub = try await TestHub(hubs: ["beta", "alpha", "Gamma"])
    let short = await hub.send(.get, "/", token: Self.root)
    #expect(short.headers["Content-Type"] == WireName.atomFeed)
    #expect(
      short.text.contains(
        #"<title type="text">Gamma</title>"#))
    #expect(short.text.contains(#"href="http://contoso-ns.servicebus.windows.net/alpha"/>"#))
    let all = await hub.send(
      .get, "/$Resources/NotificationHubs/?api-version=2014-09&$skip=0&$top=2147483647",
      token: Self.root)
    #expect(all.text.contains(#"<title type="text">NotificationHubs</title>"#))
    #expect(try HubListing.decode(all.text.utf8).map(\.name) == ["beta", "alpha", "Gamma"])
    let page = await hub.send(
      .get, "/%24Resources/notificationhubs?$skip=1&$top=1", token: Self.root)
    #expect(try HubListing.decode(page.text.utf8).map(\.name) == ["alpha"])
    let wrong = await hub.send(.get, "/$Resources/NotificationHubs?$skip=-1", token: Self.root)
    #expect(wrong.status == .badRequest)
  }

  static let badJobs: [String] = [
    "", "<a/>", job("ExportRegistrations", output: nil),
    job("ExportRegistrations", input: "https://h/c/in.txt"),
    job("ImportCreateRegistrations"), job("ImportSomething", input: "https://h/c/in.txt"),
    job("ExportRegistrations", output: "container"), job("ExportRegistrations", output: "https://"),
    job("ImportUpdateRegistrations", input: "in.txt"),
  ]

  static func job(
    _ type: String, output: String? = "https://h/c?sig=1&amp;se=2", input: String? = nil
  ) -> String {
    let output = output.map { "<OutputContainerUri>\($0)</OutputContainerUri>" } ?? ""
    let input = input.map { "<ImportFileUri>\($0)</ImportFileUri>" } ?? ""
    return "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\">"
      + "<NotificationHubJob xmlns=\"\(WireName.connectNamespace)\">\(input)\(output)"
      + "<Type>\(type)</Type></NotificationHubJob></content></entry>"
  }

  @Test("a job that says too little is 400", arguments: badJobs)
  func badJob(body: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.post, "/hub1/jobs", body: body)
    #expect(reply.status == .badRequest)
    #expect(reply.message == "The supplied notificationhub job payload is invalid")
    #expect(try await hub.store.unfinishedJobs().isEmpty)
  }

  @Test("jobs are submitted and read with Manage only, and listed")
  func jobs() async throws {
    let hub = try await TestHub()
    let body = Self.job("ExportRegistrations")
    #expect(
      await hub.send(.post, "/hub1/jobs", body: body, token: Self.listen).status == .forbidden)
    let posted = await hub.send(.post, "/hub1/jobs/?api-version=2015-01", body: body)
    #expect(posted.status == .created)
    let job = try NotificationHubJob.decode(posted.text.utf8)
    #expect(job.outputContainerURI == "https://h/c?sig=1&se=2")
    let id = try #require(job.jobID)
    let listed = await hub.send(.get, "/hub1/jobs")
    #expect(try NotificationHubJob.decodeFeed(listed.text.utf8).map(\.jobID) == [id])
    #expect(listed.text.contains(#"<title type="text">jobs</title>"#))
    #expect(await hub.send(.get, "/hub1/jobs/nobody").status == .notFound)
    let files = Self.job(
      "ImportCreateRegistrations", output: "file:///srv/jobs", input: "file:///srv/jobs/in.txt")
    #expect(await hub.send(.post, "/hub1/jobs", body: files).status == .created)
    #expect(await hub.send(.get, "/hub1/jobs/\(id)", token: Self.listen).status == .forbidden)
  }
}
