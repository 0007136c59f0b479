/// A Windows app as WNS knows it; kept in the state file.
struct WNSApp: Sendable, Codable {
  /// Unique in the emulator.
  let number: UInt32
  /// `ms-app://s-1-15-2-…`; compared without regard to case.
  let packageSID: String
  var secret: String
  var entra: Entra?

  /// The same app's registration at Microsoft Entra.
  struct Entra: Sendable, Codable {
    let tenant: String
    let clientID: String
    var secret: String
  }
}

/// What Microsoft knows of apps and access tokens.
struct WNSAccounts: Sendable {
  private(set) var apps: [UInt32: WNSApp] = [:]
  /// By folded package SID.
  private var packages: [String: UInt32] = [:]
  /// By folded tenant and client id.
  private var clients: [String: UInt32] = [:]
  var liveTokens = AccessTokens()
  var entraTokens = AccessTokens()
  var appRates = RateTable<UInt32>()
  var channelRates = RateTable<Int>()

  func app(package sid: String) -> WNSApp? { packages[sid.lowercased()].flatMap { apps[$0] } }

  func app(tenant: String, client: String) -> WNSApp? {
    clients[Self.key(tenant, client)].flatMap { apps[$0] }
  }

  /// Takes an app up, also in the place of what it was before.
  mutating func add(_ app: WNSApp) {
    remove(index: app.number)
    apps[app.number] = app
    packages[app.packageSID.lowercased()] = app.number
    if let entra = app.entra { clients[Self.key(entra.tenant, entra.clientID)] = app.number }
  }

  mutating func remove(app number: UInt32) {
    remove(index: number)
    apps[number] = nil
    revokeTokens(of: number)
  }

  private mutating func remove(index number: UInt32) {
    guard let app = apps[number] else { return }
    packages[app.packageSID.lowercased()] = nil
    if let entra = app.entra { clients[Self.key(entra.tenant, entra.clientID)] = nil }
  }

  mutating func revokeTokens(of app: UInt32) {
    liveTokens.revoke(app: app)
    entraTokens.revoke(app: app)
  }

  mutating func forgetDevices() {
    appRates = RateTable()
    channelRates = RateTable()
  }

  private static func key(_ tenant: String, _ client: String) -> String {
    "\(tenant)\n\(client)".lowercased()
  }
}
