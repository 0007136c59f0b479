import Cryptography

/// FCM at the control API.
struct FCMDesk: NamedHandleDesk {
  var service: PushService { .fcm }
  var handleMember: String { "token" }

  func fault(inHandle text: String) -> String? {
    FCMToken.isWellFormed(text) || FCMToken.isInstallationID(text)
      ? nil : "must be 11 or more letters, ':', then 100 or more (letters, digits, '-', '_')"
  }

  /// Another installation, registered in the way of the old one: by its token or by its id.
  func freshHandle(after old: NamedHandle?, in state: inout EmulatorState) -> NamedHandle {
    let byID = old.map { FCMToken.isInstallationID($0.text) } ?? false
    while true {
      let fid = FCMToken.installationID(&state.generator)
      let text = byID ? fid : FCMToken.make(fid, &state.generator)
      if state.handles.device(.fcm, text) == nil { return NamedHandle(service: .fcm, text: text) }
    }
  }

  // MARK: Devices

  /// How an app has registered at FCM.
  enum Registration: String, CaseIterable, Sendable {
    case token, fid
  }

  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSON {
    guard case .named(let handle) = handle else { return nil }
    if FCMToken.isInstallationID(handle.text) {
      return ["fid": .string(handle.text), "registered": "fid"]
    }
    return [
      "token": .string(handle.text), "fid": JSON(FCMToken.installationID(of: handle.text)),
      "registered": "token",
    ]
  }

  func makeDevices(
    _ json: JSON, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int> {
    let body = try JSONReader(
      json, known: DeviceRequest.members + ["handle", "registration"])
    let request = try DeviceRequest(body, app: app)
    let registration = try body.word("registration", Registration.self)
    var fixed: NamedHandle?
    if let reader = try body.object("handle", known: ["token", "fid"]) {
      for member in ["token", "fid"] {
        guard let text = try reader.string(member) else { continue }
        let isID = FCMToken.isInstallationID(text)
        if fixed != nil || (registration.map { ($0 == .fid) != isID } ?? false) {
          throw reader.invalid(member, "is not what the device is registered by")
        }
        if member == "token" ? !FCMToken.isWellFormed(text) : !isID {
          throw reader.invalid(
            member, fault(inHandle: text) ?? "must be 22 letters, the first of them c to f")
        }
        fixed = NamedHandle(service: .fcm, text: text)
      }
    }
    guard fixed == nil, registration == .fid else {
      return try state.addDevices(request, fixed: fixed)
    }
    let pattern = NamedHandle(service: .fcm, text: FCMToken.installationID(&state.generator))
    return state.addDevices(request) { state in
      .named(freshHandle(after: pattern, in: &state))
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

/// An FCM registration token, and the Firebase installation id that it begins with.
enum FCMToken {
  /// 22 letters for 17 bytes that begin with the bits 0111.
  static func isInstallationID(_ text: String) -> Bool {
    text.utf8.count == 22 && "cdef".utf8.contains(text.utf8.first ?? 0)
      && text.utf8.allSatisfy(isLetter)
  }

  static func installationID(_ generator: inout SeededGenerator) -> String {
    ["c", "d", "e", "f"][Int(generator.next() % 4)] + generator.base64URL(21)
  }

  /// `nil` for a token that does not begin with one.
  static func installationID(of token: String) -> String? {
    let start = String(token.prefix { $0 != ":" })
    return isInstallationID(start) ? start : nil
  }

  static func make(_ fid: String, _ generator: inout SeededGenerator) -> String {
    fid + ":APA91b" + generator.base64URL(134)
  }

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
