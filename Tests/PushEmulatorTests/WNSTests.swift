import HTTPClient
import Testing
import Wire

@testable import PushEmulator

/// WNS' stand-in with a hub's access token.
private struct Stage: Sendable {
  static let sid = "ms-app://S-1-15-2-1"
  static let toast =
    #"<toast><visual><binding template="ToastGeneric"><text>hi</text></binding></visual></toast>"#

  let scene: PlainScene
  let token: String

  static func run(
    device: JSONValue = .object([]), _ options: EmulatorOptions = .changed(),
    _ body: (Stage) async throws -> Void
  ) async throws {
    try await PlainScene.run(
      .wns,
      app: [
        "pns": "wns", "packageSid": .string(sid), "secret": "s",
        "entra": ["tenant": "t", "clientId": "c", "secret": "e"],
      ], device: device, options
    ) { scene in
      let token = try await Self.token(scene)
      try await body(Stage(scene: scene, token: token))
    }
  }

  static func credentials(
    _ change: (inout [String: String]) -> Void = { _ in }
  ) -> [(String, String)] {
    var fields = [
      "grant_type": "client_credentials", "client_id": sid, "client_secret": "s",
      "scope": "notify.windows.com",
    ]
    change(&fields)
    return fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  static func entraCredentials(
    _ change: (inout [String: String]) -> Void = { _ in }
  ) -> [(String, String)] {
    credentials { fields in
      fields["client_id"] = "c"
      fields["client_secret"] = "e"
      fields["scope"] = "https://wns.windows.com/.default"
      change(&fields)
    }
  }

  static func token(_ scene: PlainScene) async throws -> String {
    let reply = try await scene.post(form: credentials(), to: "/accesstoken.srf")
    return try #require(reply.json["access_token"]?.text)
  }

  var channel: String { scene.device["handle"]?["channelUri"]?.text ?? "" }

  func headers(_ changes: [String: String?] = [:]) -> [(name: String, value: String)] {
    var headers: [String: String] = [
      "authorization": "Bearer \(token)", "content-type": "text/xml", "x-wns-type": "wns/toast",
      "x-wns-requestforstatus": "true",
    ]
    for (name, value) in changes { headers[name.lowercased()] = value }
    return headers.map { (name: $0.key, value: $0.value) }
  }

  func push(
    _ changes: [String: String?] = [:], body: String = Stage.toast, to channel: String? = nil,
    method: String = "POST"
  ) async throws -> HTTPReply {
    try await scene.send(
      method, channel ?? self.channel, headers(changes), body: Array(body.utf8))
  }

  func raw(_ changes: [String: String?] = [:], body: String = "x") async throws -> HTTPReply {
    let raw: [String: String?] = [
      "x-wns-type": "wns/raw", "content-type": "application/octet-stream",
    ]
    return try await push(raw.merging(changes) { $1 }, body: body)
  }
}

@Suite("WNS", .timeLimit(.minutes(5)))
struct WNSTests {
  @Test("every published case gets its answer", arguments: PlainVectors.cases("wns_request_cases"))
  func vectors(item: PlainVectors.Case) async throws {
    let base = try #require(PlainVectors.all["wns_request_cases"]?["base"])
    if item.json["chunked"] == true { return try await chunked() }
    let isOffline = item.json["device"] == "offline"
    try await Stage.run(device: isOffline ? ["online": false] : .object([])) { stage in
      let other = try await stage.scene.harness.control(
        "POST", "/v1/apps", ["pns": "wns", "packageSid": "ms-app://b", "secret": "b"])
      #expect(other["pns"] == "wns")
      let foreign = try await stage.scene.post(
        form: Stage.credentials {
          $0["client_id"] = "MS-APP://B"
          $0["client_secret"] = "b"
        }, to: "/accesstoken.srf")
      let words = [
        "{token A}": stage.token, "{token B}": foreign.json["access_token"]?.text ?? "",
        "{expired token A}": "gone",
      ]
      var headers: [String: String?] = [:]
      for list in [base["headers"], item.json["headers"]] {
        for member in list?.members ?? [] {
          var value = member.value.text
          for (word, token) in words { value = value?.replacing(word, with: token) }
          headers[member.name] = .some(value)
        }
      }
      var channel = stage.channel
      switch item.json["channel"]?.text {
      case "A/unknown": channel += "x"
      case "A/expired": try await stage.scene.unregister(["mode": "expired"])
      default: break
      }
      var body = item.json["body_utf8"]?.text ?? base["body_utf8"]?.text ?? ""
      if let count = item.json["body_bytes"]?.whole {
        body = String(repeating: "x", count: Int(count))
      }
      let reply = try await stage.push(
        headers, body: body, to: channel, method: item.json["method"]?.text ?? "POST")
      let expect = try #require(item.json["expect"])
      #expect(Int64(reply.status) == expect["status"]?.whole)
      for member in expect.members ?? [] where member.name.hasPrefix("X-WNS") {
        #expect(reply[member.name] == member.value.text)
      }
      for name in expect["absent"]?.items ?? [] { #expect(reply[name.text ?? ""] == nil) }
    }
  }

  /// Row 2: what no client that is let loose on WNS sends. Over plain TCP, where a test can.
  private func chunked() async throws {
    try await Harness.run(.changed { $0.tls = false }) { harness in
      let port = try #require(
        harness.addresses[.wns].split(separator: ":").last.flatMap { UInt16($0) })
      func ask(_ lines: String) async throws -> Int {
        try await PlainScene.raw(
          "POST /?token=a HTTP/1.1\r\nHost: localhost\r\n\(lines)", port: port)
      }
      #expect(try await ask("Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n") == 411)
      #expect(try await ask("Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx") == 417)
      #expect(try await ask("Content-Length: 1\r\n\r\nx") == 401)
    }
  }

  @Test(
    "both token services check in their order",
    arguments: [
      ("", "", 200, ""), ("grant_type", "", 400, "invalid_request"),
      ("grant_type", "password", 400, "unsupported_grant_type"),
      ("client_id", "", 400, "invalid_request"), ("client_secret", "", 400, "invalid_request"),
      ("scope", "", 400, "invalid_request"), ("client_id", "ms-app://x", 401, "invalid_client"),
      ("client_secret", "wrong", 401, "invalid_client"), ("scope", "other", 400, "invalid_scope"),
    ])
  func tokens(field: String, value: String, status: UInt16, error: String) async throws {
    try await Stage.run { stage in
      let change: (inout [String: String]) -> Void = { fields in
        guard !field.isEmpty else { return }
        fields[field] = value.isEmpty ? nil : value
      }
      let live = try await stage.scene.post(
        form: Stage.credentials(change), to: "/accesstoken.srf")
      #expect(live.status == (status == 401 ? 400 : status))
      #expect(live.json["error"]?.text ?? "" == error)
      let entra = try await stage.scene.post(
        form: Stage.entraCredentials(change), to: "/t/oauth2/v2.0/token")
      #expect(entra.status == status)
      #expect(entra.json["error"]?.text ?? "" == error)
      if status == 200 {
        #expect(live.json["expires_in"]?.whole == 86_400)
        #expect(entra.json["expires_in"]?.whole == 3599)
        #expect(live.json["token_type"] == "bearer")
      }
    }
  }

  @Test("a token request must be a posted form, and an unknown tenant has no clients")
  func tokenForm() async throws {
    try await Stage.run { stage in
      let scene = stage.scene
      #expect(try await scene.send("GET", "/accesstoken.srf").status == 405)
      let json = try await scene.send(
        "POST", "/accesstoken.srf", [("Content-Type", "application/json")], body: Array("{}".utf8))
      #expect(json.status == 400 && json.json["error"] == "invalid_request")
      let tenant = try await scene.post(
        form: Stage.entraCredentials(), to: "/other/oauth2/v2.0/token")
      #expect(tenant.status == 401 && tenant.json["error"] == "invalid_client")
    }
  }

  @Test("the published forms are read", arguments: PlainVectors.cases("oauth_forms"))
  func forms(item: PlainVectors.Case) throws {
    let form = FormFields(Array((item.json["body"]?.text ?? "").utf8))
    let fields = (item.json["fields"]?.items ?? []).map { ($0.items[0].text, $0.items[1].text) }
    #expect(form.all.map { $0.name } == fields.map { $0.0 })
    #expect(form.all.map { $0.value } == fields.map { $0.1 })
    #expect(
      PlainScene.form(fields.map { ($0.0 ?? "", $0.1 ?? "") })
        == Array((item.json["body"]?.text ?? "").utf8))
  }

  @Test("expires_in comes as text if wanted")
  func lenientLifetime() async throws {
    try await Stage.run(.changed { $0.wns.expiresInAsString = true }) { stage in
      let reply = try await stage.scene.post(form: Stage.credentials(), to: "/accesstoken.srf")
      #expect(reply.json["expires_in"] == "86400")
    }
  }

  @Test("a token is good for its day, and not a second longer")
  func tokenAge() async throws {
    try await Stage.run { stage in
      try await stage.scene.harness.advance(seconds: 86_399)
      let answer1 = try await stage.push()
      #expect(answer1.status == 200)
      try await stage.scene.harness.advance(seconds: 1)
      let late = try await stage.push()
      #expect(late.status == 401)
      #expect(late["www-authenticate"] == #"Bearer error="invalid_token""#)
    }
  }

  @Test("every answer carries WNS' fields, refusals too")
  func fields() async throws {
    try await Stage.run { stage in
      for reply in [
        try await stage.push(), try await stage.push(["authorization": nil]),
        try await stage.push(["MS-CV": "abc.1"], to: stage.scene.origin + "/?token=none"),
      ] {
        let id = try #require(reply["x-wns-msg-id"])
        #expect(id.count == 16 && id.allSatisfy(\.isHexDigit))
        #expect(reply["x-wns-debug-trace"] != nil)
        #expect(reply["ms-cv"] != nil)
        #expect(reply["x-wns-status"] == (reply.status == 200 ? "received" : "dropped"))
        #expect((reply["x-wns-error-description"] == nil) == (reply.status == 200))
      }
    }
  }

  @Test(
    "row 7: contradictory or illegal fields",
    arguments: [
      ["x-wns-type": "wns/other"], ["content-type": "application/octet-stream"],
      ["x-wns-suppresspopup": "true"], ["x-wns-match": "type:wns/toast"], ["x-wns-group": "a b"],
      ["x-wns-tag": ""], ["x-wns-requestforstatus": "maybe"], ["x-wns-priority": "0"],
      ["x-wns-ttl": "-1"],
      ["x-wns-type": "wns/tile", "x-wns-group": "g"],
    ])
  func illegal(changes: [String: String]) async throws {
    try await Stage.run { stage in
      let answer2 = try await stage.push(changes.mapValues { $0 })
      #expect(answer2.status == 400)
    }
  }

  @Test("rows 1 and 8: DELETE is for phones, and Entra's tokens for toast and raw")
  func kindsOfToken() async throws {
    try await Stage.run { stage in
      let answer3 = try await stage.push(method: "DELETE")
      #expect(answer3.status == 405)
      let answer4 = try await stage.push(["x-wns-match": "type:wns/toast"], method: "DELETE")
      #expect(answer4.status == 400)
      let reply = try await stage.scene.post(
        form: Stage.entraCredentials(), to: "/t/oauth2/v2.0/token")
      let bearer = "Bearer \(reply.json["access_token"]?.text ?? "")"
      let answer5 = try await stage.push(["authorization": bearer])
      #expect(answer5.status == 200)
      let answer6 = try await stage.raw(["authorization": bearer])
      #expect(answer6.status == 200)
      for kind in ["tile", "badge"] {
        let changes = ["authorization": bearer, "x-wns-type": "wns/\(kind)"]
        let body = "<\(kind)/>"
        let answer7 = try await stage.push(changes.mapValues { $0 }, body: body)
        #expect(answer7.status == 400)
        let answer8 = try await stage.push(["x-wns-type": "wns/\(kind)"], body: body)
        #expect(answer8.status == 200)
      }
    }
  }

  @Test("row 9: an empty payload, and one over the listener's own limit")
  func sizes() async throws {
    try await Stage.run { stage in
      let answer9 = try await stage.raw(body: "")
      #expect(answer9.status == 400)
      let huge = try await stage.raw(body: String(repeating: "x", count: 70_000))
      #expect(huge.status == 413 && huge["x-wns-status"] == "dropped")
    }
  }

  @Test(
    "row 10: what is no XML of its type is dropped, or refused by a strict service",
    arguments: ["<tile/>", "<toast>", "hi", "<toast/><toast/>"])
  func badXML(body: String) async throws {
    try await Stage.run { stage in
      let reply = try await stage.push(body: body)
      #expect(reply.status == 200 && reply["x-wns-status"] == "dropped")
      let answer10 = try await stage.scene.eventNames()
      #expect(answer10 == ["discarded"])
    }
    try await Stage.run(.changed { $0.wns.strictXML = true }) { stage in
      let answer11 = try await stage.push(body: body)
      #expect(answer11.status == 400)
    }
  }

  @Test("row 11: an app that sends too much")
  func appRate() async throws {
    try await Stage.run(.changed { $0.wns.appRate = 1 }) { stage in
      let answer12 = try await stage.push()
      #expect(answer12.status == 200)
      let reply = try await stage.push()
      #expect(reply.status == 406 && reply["retry-after"] == "60")
    }
  }

  @Test("row 12: a channel that gets too much")
  func channelRate() async throws {
    try await Stage.run(.changed { $0.wns.channelRate = 1 }) { stage in
      let answer13 = try await stage.push()
      #expect(answer13["x-wns-status"] == "received")
      let reply = try await stage.push()
      #expect(reply.status == 200)
      #expect(reply["x-wns-status"] == "channelthrottled")
      #expect(reply["x-wns-continue-after"] == "60")
      let answer14 = try await stage.scene.delivered()
      #expect(answer14.count == 1)
    }
  }

  @Test("a channel ends after 30 days, and a new one takes its place")
  func lifetime() async throws {
    try await Stage.run { stage in
      let expires = stage.scene.device["handle"]?["expires"]?.whole
      #expect(expires == Harness.noon + 30 * 86_400_000)
      let id = PlainScene.id(stage.scene.device)
      let renewed = try await stage.scene.harness.control("POST", "/v1/devices/\(id)/rotate")
      let fresh = try #require(renewed["handle"]?["channelUri"]?.text)
      let answer15 = try await stage.push()
      #expect(answer15.status == 410)
      let answer16 = try await stage.push(to: fresh)
      #expect(answer16.status == 200)
      try await stage.scene.harness.advance(seconds: 30 * 86_400)
      let token = try await Stage.token(stage.scene)
      let answer17 = try await stage.push(["authorization": "Bearer \(token)"], to: fresh)
      #expect(answer17.status == 410)
    }
  }

  @Test("a device that is offline keeps one notification of each type, the newest")
  func store() async throws {
    try await Stage.run(device: ["online": false]) { stage in
      for text in ["1", "2"] {
        let toast = Stage.toast.replacing("hi", with: text)
        let reply = try await stage.push(["x-wns-tag": "t\(text)"], body: toast)
        #expect(reply["x-wns-status"] == "received")
        #expect(reply["x-wns-deviceconnectionstatus"] == "disconnected")
      }
      for kind in ["tile", "badge"] {
        _ = try await stage.push(["x-wns-type": "wns/\(kind)"], body: "<\(kind)/>")
      }
      _ = try await stage.raw(["x-wns-cache-policy": "cache"])
      let answer18 = try await stage.push(["x-wns-cache-policy": "no-cache"])
      #expect(answer18["x-wns-status"] == "dropped")
      let answer19 = try await stage.scene.eventNames()
      #expect(answer19 == ["replaced", "discarded"])
      try await stage.scene.change(["online": true])
      let types = try await stage.scene.delivered().map { $0["headers"]?["x-wns-type"]?.text }
      #expect(types == ["wns/toast", "wns/tile", "wns/badge", "wns/raw"])
      let answer20 = try await stage.scene.delivered()
      #expect(answer20[0]["headers"]?["x-wns-tag"] == "t2")
    }
  }

  @Test("a tile queue keeps five, told apart by their tags")
  func tileQueue() async throws {
    try await Stage.run(device: ["online": false], .changed { $0.wns.tileQueue = true }) { stage in
      for tag in ["a", "b", "c", "d", "e", "b", "f"] {
        _ = try await stage.push(
          ["x-wns-type": "wns/tile", "x-wns-tag": tag], body: "<tile/>")
      }
      try await stage.scene.change(["online": true])
      let tags = try await stage.scene.delivered().map { $0["headers"]?["x-wns-tag"]?.text }
      #expect(tags == ["b", "c", "d", "e", "f"])
    }
  }

  @Test("what waits is dropped when its time is over: three days, or X-WNS-TTL")
  func expiry() async throws {
    try await Stage.run(device: ["online": false]) { stage in
      _ = try await stage.push(["x-wns-ttl": "60"])
      _ = try await stage.push(["x-wns-type": "wns/tile"], body: "<tile/>")
      try await stage.scene.harness.advance(seconds: 60)
      let answer21 = try await stage.scene.eventNames()
      #expect(answer21 == ["expired"])
      try await stage.scene.harness.advance(seconds: 3 * 86_400 - 61)
      let answer22 = try await stage.scene.stored()
      #expect(answer22.count == 1)
      try await stage.scene.harness.advance(seconds: 1)
      let answer23 = try await stage.scene.eventNames()
      #expect(answer23 == ["expired", "expired"])
    }
  }

  @Test("priority 3 and 4 wait while the device saves power, 1 and 2 do not")
  func priorities() async throws {
    try await Stage.run(device: .object([])) { stage in
      try await stage.scene.change(["powerSaving": true])
      for priority in ["3", "4", "2", "1"] {
        let kind = ["3": "toast", "4": "badge", "2": "tile", "1": "toast"][priority] ?? ""
        _ = try await stage.push(
          ["x-wns-type": "wns/\(kind)", "x-wns-priority": priority], body: "<\(kind)/>")
      }
      let answer24 = try await stage.scene.delivered()
      #expect(
        answer24.map { $0["headers"]?["x-wns-priority"]?.text }
          == ["2", "1"])
      try await stage.scene.change(["powerSaving": false])
      let answer25 = try await stage.scene.delivered()
      #expect(answer25.count == 4)
    }
  }

  @Test("an online device shows which notification takes another's place")
  func replaces() async throws {
    try await Stage.run { stage in
      _ = try await stage.push(["x-wns-tag": "a", "x-wns-group": "g"])
      _ = try await stage.push(["x-wns-tag": "a"])
      _ = try await stage.push(["x-wns-tag": "a", "x-wns-group": "g"])
      let shown = try await stage.scene.delivered()
      #expect(shown.map { $0["replaces"]?.text } == [nil, nil, shown[0]["id"]?.text])
    }
  }

  @Test("a user who turned notifications off is told, an app that is gone is not yet")
  func disabled() async throws {
    try await Stage.run { stage in
      try await stage.scene.change(["disabled": true])
      let reply = try await stage.push()
      #expect(reply["x-wns-status"] == "dropped")
      #expect(reply["x-wns-deviceconnectionstatus"] == "connected")
      try await stage.scene.change(["disabled": false])
      try await stage.scene.unregister(["mode": "unregistered", "silentFor": 60])
      let answer26 = try await stage.push()
      #expect(answer26["x-wns-status"] == "received")
      try await stage.scene.harness.advance(seconds: 60)
      let answer27 = try await stage.push()
      #expect(answer27.status == 410)
    }
  }

  @Test("faults speak WNS' language")
  func faults() async throws {
    try await Stage.run { stage in
      func fault(_ pns: String, _ action: JSONValue) async throws {
        try await stage.scene.harness.control("DELETE", "/v1/faults")
        try await stage.scene.harness.control(
          "POST", "/v1/faults", ["pns": .string(pns), "stage": "before", "action": action])
      }
      try await fault("wns", ["type": "reply", "status": 429])
      let answer28 = try await stage.push()
      #expect(answer28.status == 406)
      try await fault("wns", ["type": "reply", "status": 200, "reason": "channelthrottled"])
      let answer29 = try await stage.push()
      #expect(answer29["x-wns-status"] == "channelthrottled")
      try await fault("wns-token", ["type": "reply", "status": 503])
      let answer30 = try await stage.push()
      #expect(answer30.status == 200)
      let token = try await stage.scene.post(form: Stage.credentials(), to: "/accesstoken.srf")
      #expect(token.status == 503 && token.json["error"] != nil)
    }
  }

  @Test("a changed secret and revoked tokens are refused")
  func changes() async throws {
    try await Stage.run { stage in
      let id = stage.scene.app["appId"]?.text ?? ""
      try await stage.scene.harness.control(
        "PATCH", "/v1/apps/\(id)", ["secret": "new", "revokeTokens": true])
      let answer31 = try await stage.push()
      #expect(answer31.status == 401)
      let old = try await stage.scene.post(form: Stage.credentials(), to: "/accesstoken.srf")
      #expect(old.json["error"] == "invalid_client")
      let new = try await stage.scene.post(
        form: Stage.credentials { $0["client_secret"] = "new" }, to: "/accesstoken.srf")
      #expect(new.status == 200)
    }
  }
}

@Suite("XML outline")
struct RootElementTests {
  @Test(
    "well-formed texts have a root",
    arguments: [
      ("<toast/>", "toast"),
      (" <?xml version=\"1.0\"?>\n<tile a='1' b=\"&lt;\"> x </tile >\n", "tile"),
      ("<a><!-- < --><b/><![CDATA[ <&> ]]>&#x41;</a>", "a"), ("\u{FEFF}<é/>", "é"),
    ])
  func wellFormed(text: String, root: String) {
    #expect(rootElement(of: Array(text.utf8)) == root)
  }

  @Test(
    "others have none",
    arguments: [
      "", "x", "<a>", "</a>", "<a></b>", "<a/><b/>", "<a/>x", "<a b/>", "<a b=1/>",
      "<a b='1' b='2'/>",
      "<a b='<'/>", "<a>&</a>", "<a>&x;</a>", "<a>&#0;</a>", "<a", "<!DOCTYPE a><a/>",
      "<a>\u{1}</a>",
      "<1/>", "<a><![CDATA[</a>", "<a b='1'c='2'/>", "<a><!--</a>",
      String(repeating: "<a>", count: 100_000),
    ])
  func broken(text: String) { #expect(rootElement(of: Array(text.utf8)) == nil) }
}
