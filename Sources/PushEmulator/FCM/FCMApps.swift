import Cryptography
import HTTPServer
import Wire

/// FCM at the control API.
extension FCMStandIn {
  /// A Firebase project with its Android app, as Google knows it; kept in the state file.
  struct App: ServiceApp {
    let number: UInt32
    let projectID: String
    let senderID: String
    var packageName: String
    var accounts: [Account]
    /// In the state file only, see ``FCMStandIn/topics``; absent in older ones.
    var subscriptions: FCMTopics?

    init(
      number: UInt32, projectID: String, senderID: String, packageName: String,
      accounts: [Account]
    ) {
      self.number = number
      self.projectID = projectID
      self.senderID = senderID
      self.packageName = packageName
      self.accounts = accounts
    }

    var names: [String] { [projectID] }

    /// A key of a service account. One client may have several.
    struct Account: Sendable, Codable, Equatable {
      let clientEmail: String
      let privateKeyID: String
      let publicKeyPEM: String
      /// The private key, for a key that the emulator made; shown once, and kept for its operator.
      var privateKeyPEM: String?
      var isDisabled = false
    }

    /// The account's key file as downloaded from the console.
    ///
    /// - Parameter tokenURI: The stand-in's.
    func file(_ account: Account, tokenURI: String) -> JSONValue? {
      guard let key = account.privateKeyPEM else { return nil }
      let name = account.clientEmail.replacing("@", with: "%40")
      return [
        "type": "service_account", "project_id": .string(projectID),
        "private_key_id": .string(account.privateKeyID), "private_key": .string(key),
        "client_email": .string(account.clientEmail), "client_id": .string(senderID),
        "auth_uri": "https://accounts.google.com/o/oauth2/auth", "token_uri": .string(tokenURI),
        "auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs",
        "client_x509_cert_url": .string(
          "https://www.googleapis.com/robot/v1/metadata/x509/" + name),
        "universe_domain": "googleapis.com",
      ]
    }
  }

  // MARK: Devices

  /// The way in which an app has registered at FCM.
  private enum Registration: String, CaseIterable, Sendable {
    case token, fid
  }

  func fault(inHandle text: String) -> String? {
    FCMToken.isWellFormed(text) || FCMToken.isInstallationID(text)
      ? nil : "must be 11 or more letters, ':', then 100 or more (letters, digits, '-', '_')"
  }

  /// The handle of another installation, registered like the old one: by its token or by its id.
  func freshText(after old: NamedHandle?, _ generator: inout SeededGenerator) -> String {
    let fid = FCMToken.installationID(&generator)
    let isByID = old.map { FCMToken.isInstallationID($0.text) } ?? false
    return isByID ? fid : FCMToken.make(fid, &generator)
  }

  func handleJSON(_ handle: NamedHandle, in state: EmulatorState) -> JSONValue {
    if FCMToken.isInstallationID(handle.text) {
      return ["fid": .string(handle.text), "registered": "fid"]
    }
    return [
      "token": .string(handle.text), "fid": JSONValue(FCMToken.installationID(of: handle.text)),
      "registered": "token",
    ]
  }

  func makeDevices(
    _ json: JSONValue, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int> {
    let body = try JSONReader(
      json, known: DeviceRequest.members + ["handle", "registration"])
    let request = try DeviceRequest(body, app: app)
    let registration = try body.word("registration", Registration.self)
    var fixed: NamedHandle?
    if let reader = try body.object("handle", known: Self.handleMembers) {
      for member in Self.handleMembers {
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
    var pattern: NamedHandle?
    if fixed == nil, registration == .fid {
      pattern = NamedHandle(service: .fcm, text: FCMToken.installationID(&state.generator))
    }
    return try state.addDevices(
      request, fixed: fixed.map(DeviceHandle.named), like: pattern.map(DeviceHandle.named))
  }

  func addRoutes(to api: ControlAPI, _ on: ControlAPI.Adder) {
    api.onDevice(on, .post, "/register") { state, index, request throws(ControlError) in
      let body = try JSONReader(try request.json(), known: ["by"])
      guard let by = try body.word("by", Registration.self) else { throw .missing("by") }
      try Self.register(index, by: by, in: &state)
      return state.details(of: index)
    }
    api.onDevice(on, .post, "/topics") { state, index, request throws(ControlError) in
      let body = try JSONReader(try request.json(), known: ["subscribe", "unsubscribe"])
      try self.changeTopics(of: index, body, in: &state)
      return state.details(of: index)
    }
  }

  /// Registers a device by its installation id or by a new token, as its app would; the other
  /// registration ends. An id is returned in the same letter case.
  private static func register(
    _ index: Int, by registration: Registration, in state: inout EmulatorState
  ) throws(ControlError) {
    guard case .named(let old) = state.devices[index].handle, old.service == .fcm else {
      throw .invalidValue("by", "is for devices of fcm")
    }
    guard let fid = FCMToken.installationID(of: old.text) else {
      throw .conflict("the device's token does not begin with an installation id")
    }
    let text: String
    switch registration {
    case .fid: text = fid
    case .token where old.text == fid: text = FCMToken.make(fid, &state.generator)
    case .token: text = old.text
    }
    state.replaceHandle(of: index, with: .named(NamedHandle(service: .fcm, text: text)))
  }

  // MARK: Apps

  func makeApp(
    _ json: JSONValue, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: JSONValue) {
    let body = try JSONReader(
      json, known: ["pns", "projectId", "senderId", "packageName", "serviceAccounts"])
    let project = try body.required("projectId")
    guard project.utf8.allSatisfy(Self.isProjectLetter), project.utf8.count <= 64 else {
      throw body.invalid("projectId", "must be letters, digits, '-', '.', ':' or '_'")
    }
    guard apps.named(project) == nil else {
      throw .conflict("there is a project '\(project)' already")
    }
    let sender = try body.string("senderId") ?? state.generator.digits(12)
    let package = try body.string("packageName") ?? "com.example.app"
    var accounts = try Self.accounts(body)
    if accounts == nil { accounts = [try Self.makeAccount(project: project, in: &state)] }
    let app = App(
      number: state.newApp(.fcm), projectID: project, senderID: sender, packageName: package,
      accounts: accounts ?? [])
    apps.add(app)
    let file = app.accounts.first.flatMap { app.file($0, tokenURI: state.addresses.fcmTokenURI) }
    return (app.number, file.map { ["serviceAccount": $0] } ?? [:])
  }

  private static func isProjectLetter(_ byte: UInt8) -> Bool {
    byte.isBase64URL || byte == UInt8(ascii: ".") || byte == UInt8(ascii: ":")
  }

  private static func makeAccount(
    project: String, in state: inout EmulatorState
  ) throws(ControlError) -> App.Account {
    do {
      let key = try RSAPrivateKey()
      return App.Account(
        clientEmail: "pusher@\(project).iam.gserviceaccount.com",
        privateKeyID: state.generator.hex(40), publicKeyPEM: try key.publicKey().pem,
        privateKeyPEM: try key.pem())
    } catch {
      throw .engine(error)
    }
  }

  private static func accounts(_ body: JSONReader) throws(ControlError) -> [App.Account]? {
    guard let items = try body.array("serviceAccounts") else { return nil }
    var accounts: [App.Account] = []
    for (index, item) in items.enumerated() {
      let reader = try reader(item, index)
      _ = try reader.required("publicKeyPem")
      if let account = try account(reader) { accounts.append(account) }
    }
    return accounts
  }

  private static func reader(_ item: JSONValue, _ index: Int) throws(ControlError) -> JSONReader {
    try JSONReader(
      item, known: ["clientEmail", "privateKeyId", "publicKeyPem", "disabled"],
      path: "serviceAccounts[\(index)]")
  }

  /// - Returns: `nil` for an item without a key.
  private static func account(_ reader: JSONReader) throws(ControlError) -> App.Account? {
    guard let pem = try reader.string("publicKeyPem") else { return nil }
    do {
      _ = try RSAPublicKey(pem: pem)
    } catch {
      throw reader.invalid("publicKeyPem", "cannot be used: \(error)")
    }
    return .init(
      clientEmail: try reader.required("clientEmail"),
      privateKeyID: try reader.string("privateKeyId") ?? "", publicKeyPEM: pem,
      isDisabled: try reader.bool("disabled") ?? false)
  }

  /// `serviceAccounts` are disabled, enabled, or added (those with a `publicKeyPem`);
  /// `revokeTokens` revokes all access tokens.
  static let changeableMembers = ["serviceAccounts", "revokeTokens", "packageName"]

  func change(_ app: inout App, _ body: JSONReader) throws(ControlError) {
    if let package = try body.string("packageName") { app.packageName = package }
    for (index, item) in (try body.array("serviceAccounts") ?? []).enumerated() {
      let reader = try Self.reader(item, index)
      if let account = try Self.account(reader) {
        app.accounts.append(account)
        continue
      }
      let client = try reader.required("clientEmail")
      let keyID = try reader.string("privateKeyId")
      let disabled = try reader.bool("disabled")
      let places = app.accounts.indices.filter {
        app.accounts[$0].clientEmail == client
          && (keyID == nil || app.accounts[$0].privateKeyID == keyID)
      }
      if places.isEmpty { throw .notFound("service account '\(client)' with that key") }
      for place in places {
        app.accounts[place].isDisabled = disabled ?? app.accounts[place].isDisabled
      }
    }
    if try body.bool("revokeTokens") ?? false { revokeTokens(of: app.number) }
  }

  func appJSON(_ number: UInt32, made: JSONValue, in state: EmulatorState) -> JSONValue {
    guard let app = apps[number] else { return [:] }
    let accounts = app.accounts.map { account -> JSONValue in
      [
        "clientEmail": .string(account.clientEmail),
        "privateKeyId": .string(account.privateKeyID), "disabled": .bool(account.isDisabled),
        "publicKeyPem": .string(account.publicKeyPEM),
      ]
    }
    return [
      "projectId": .string(app.projectID), "senderId": .string(app.senderID),
      "packageName": .string(app.packageName), "serviceAccounts": .array(accounts),
      "tokenUri": .string(state.addresses.fcmTokenURI),
    ]
  }
}

extension EmulatorAddresses {
  /// The URL that issues access tokens: over HTTP/1.1, because many clients fetch them that way,
  /// whatever they use for messages.
  fileprivate var fcmTokenURI: String { (origins(.fcm).last ?? "") + "/token" }
}

/// An FCM registration token, and the Firebase installation id that it begins with.
enum FCMToken {
  /// 22 letters for 17 bytes that begin with the bits 0111.
  static func isInstallationID(_ text: String) -> Bool {
    text.utf8.count == 22 && "cdef".utf8.contains(text.utf8.first ?? 0)
      && text.utf8.allSatisfy(\.isBase64URL)
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

  /// `^[A-Za-z0-9_-]{11,}:[A-Za-z0-9_-]{100,}$` (docs/protocol/emulator.md, section 5.2).
  static func isWellFormed(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    return parts.count == 2 && parts[0].count >= 11 && parts[1].count >= 100
      && parts.allSatisfy { $0.allSatisfy(\.isBase64URL) }
  }
}

extension EmulatorServer {
  /// A Firebase project and its service account.
  package struct FirebaseProject: Sendable {
    package let appID: String
    package let projectID: String
    package let clientEmail: String
    package let privateKeyID: String
    /// PEM PKCS#8.
    package let privateKey: String
    /// The URLs of the send endpoint and of the token service.
    package let endpoint: String
    package let tokenURI: String
  }

  /// The project with this id, and an account whose key the emulator made; both are made if
  /// necessary.
  ///
  /// - Throws: `ControlError` in words for people; `EmulatorError` before the start.
  package func firebaseProject(_ projectID: String = "demo-project") throws -> FirebaseProject {
    try with(FCMStandIn.self) { fcm, state in
      if fcm.apps.named(projectID) == nil {
        _ = try fcm.makeApp(["pns": "fcm", "projectId": .string(projectID)], in: &state)
      }
      guard let app = fcm.apps.named(projectID),
        let account = app.accounts.first(where: { $0.privateKeyPEM != nil && !$0.isDisabled })
      else {
        throw ControlError.conflict("project '\(projectID)' has no account of the emulator's own")
      }
      return FirebaseProject(
        appID: EmulatorState.appID(app.number), projectID: projectID,
        clientEmail: account.clientEmail, privateKeyID: account.privateKeyID,
        privateKey: account.privateKeyPEM ?? "", endpoint: state.addresses.origin(.fcm),
        tokenURI: state.addresses.fcmTokenURI)
    }
  }
}
