import Cryptography

/// FCM at the control API.
struct FCMDesk: NamedHandleDesk {
  var service: PushService { .fcm }
  var handleMember: String { "token" }

  func fault(inHandle text: String) -> String? {
    FCMToken.isWellFormed(text)
      ? nil : "must be 11 or more letters, ':', then 100 or more (letters, digits, '-', '_')"
  }

  func freshHandle(after old: NamedHandle?, in state: inout EmulatorState) -> NamedHandle {
    while true {
      let text =
        state.generator.base64URL(22) + ":APA91b" + state.generator.base64URL(134)
      if state.handles.device(.fcm, text) == nil { return NamedHandle(service: .fcm, text: text) }
    }
  }

  // MARK: Apps

  func makeApp(
    _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: [JSON.Member]) {
    let body = try JSONReader(
      json, known: ["pns", "projectId", "senderId", "packageName", "serviceAccounts"])
    let project = try body.required("projectId")
    guard project.utf8.allSatisfy(Self.isProjectLetter), project.utf8.count <= 64 else {
      throw body.invalid("projectId", "must be letters, digits, '-', '.', ':' or '_'")
    }
    guard state.fcm.app(project: project) == nil else {
      throw .conflict("there is a project '\(project)' already")
    }
    let sender = try body.string("senderId") ?? state.generator.digits(12)
    let package = try body.string("packageName") ?? "com.example.app"
    var accounts = try Self.accounts(body)
    if accounts == nil { accounts = [try Self.makeAccount(project: project, in: &state)] }
    let app = FCMApp(
      number: state.newApp(.fcm), projectID: project, senderID: sender, packageName: package,
      accounts: accounts ?? [])
    try Self.add(app, to: &state)
    let files = app.accounts.compactMap { app.file($0, tokenURI: state.tokenURI(.fcm)) }
    return (app.number, files.map { .init(name: "serviceAccount", value: $0) })
  }

  private static func add(
    _ app: FCMApp, to state: inout EmulatorState
  ) throws(ControlError) {
    do {
      try state.fcm.add(app)
    } catch {
      throw .invalidValue("serviceAccounts", "hold a publicKeyPem that cannot be used: \(error)")
    }
  }

  private static func isProjectLetter(_ byte: UInt8) -> Bool {
    FCMToken.isLetter(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: ":")
  }

  private static func makeAccount(
    project: String, in state: inout EmulatorState
  ) throws(ControlError) -> FCMApp.Account {
    do {
      let key = try RSAPrivateKey()
      return FCMApp.Account(
        clientEmail: "pusher@\(project).iam.gserviceaccount.com",
        privateKeyID: state.generator.hex(40), publicKeyPEM: try key.publicKey().pem,
        privateKeyPEM: try key.pem())
    } catch {
      throw ControlError(status: 500, code: "engine", message: "\(error)")
    }
  }

  private static func accounts(_ body: JSONReader) throws(ControlError) -> [FCMApp.Account]? {
    guard let items = try body.array("serviceAccounts") else { return nil }
    var accounts: [FCMApp.Account] = []
    for (index, item) in items.enumerated() {
      let reader = try JSONReader(
        item, known: ["clientEmail", "privateKeyId", "publicKeyPem", "disabled"],
        path: body.name("serviceAccounts") + "[\(index)]")
      let pem = try reader.required("publicKeyPem")
      do {
        _ = try RSAPublicKey(pem: pem)
      } catch {
        throw reader.invalid("publicKeyPem", "cannot be used: \(error)")
      }
      accounts.append(
        .init(
          clientEmail: try reader.required("clientEmail"),
          privateKeyID: try reader.string("privateKeyId") ?? "", publicKeyPEM: pem,
          isDisabled: try reader.bool("disabled") ?? false))
    }
    return accounts
  }

  /// `serviceAccounts` are disabled, enabled, or added (those with a `publicKeyPem`);
  /// `revokeTokens` ends all access tokens.
  func changeApp(
    _ number: UInt32, _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) {
    let body = try JSONReader(json, known: ["serviceAccounts", "revokeTokens", "packageName"])
    guard var app = state.fcm.apps[number] else { return }
    if let package = try body.string("packageName") { app.packageName = package }
    for (index, item) in (try body.array("serviceAccounts") ?? []).enumerated() {
      let path = "serviceAccounts[\(index)]"
      let reader = try JSONReader(
        item, known: ["clientEmail", "privateKeyId", "publicKeyPem", "disabled"], path: path)
      let client = try reader.required("clientEmail")
      let keyID = try reader.string("privateKeyId")
      let disabled = try reader.bool("disabled")
      if let pem = try reader.string("publicKeyPem") {
        app.accounts.append(
          .init(
            clientEmail: client, privateKeyID: keyID ?? "", publicKeyPEM: pem,
            isDisabled: disabled ?? false))
        continue
      }
      var found = false
      for place in app.accounts.indices
      where app.accounts[place].clientEmail == client
        && (keyID == nil || app.accounts[place].privateKeyID == keyID)
      {
        found = true
        app.accounts[place].isDisabled = disabled ?? app.accounts[place].isDisabled
      }
      guard found else { throw .notFound("service account '\(client)' with that key") }
    }
    let revokes = try body.bool("revokeTokens") ?? false
    try Self.add(app, to: &state)
    if revokes { state.fcm.revokeTokens(of: number) }
    state.revision += 1
  }

  func appMembers(
    _ number: UInt32, made: [JSON.Member], in state: EmulatorState
  ) -> [JSON.Member] {
    guard let app = state.fcm.apps[number] else { return [] }
    let accounts = app.accounts.map { account -> JSON in
      [
        "clientEmail": .string(account.clientEmail),
        "privateKeyId": .string(account.privateKeyID), "disabled": .bool(account.isDisabled),
        "publicKeyPem": .string(account.publicKeyPEM),
      ]
    }
    let members: JSON = [
      "projectId": .string(app.projectID), "senderId": .string(app.senderID),
      "packageName": .string(app.packageName), "serviceAccounts": .array(accounts),
      "tokenUri": .string(state.tokenURI(.fcm)),
    ]
    return members.members ?? []
  }

  func removeApp(_ number: UInt32, from state: inout EmulatorState) {
    state.fcm.remove(app: number)
  }
}

extension EmulatorState {
  /// Where access tokens of a service are handed out: over HTTP/1.1 where it speaks that too, for
  /// many a client fetches them so whatever it sends messages with.
  func tokenURI(_ service: PushService) -> String {
    (origins.all(service).last ?? "") + "/token"
  }
}

/// An FCM registration token.
enum FCMToken {
  /// `^[A-Za-z0-9_-]{11,}:[A-Za-z0-9_-]{100,}$` (emulator.md, 5.2, check 8).
  static func isWellFormed(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    return parts.count == 2 && parts[0].count >= 11 && parts[1].count >= 100
      && parts.allSatisfy { $0.allSatisfy(isLetter) }
  }

  /// Of base 64 URL.
  static func isLetter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
