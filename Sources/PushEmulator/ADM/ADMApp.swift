/// An app as Amazon knows it; kept in the state file.
struct ADMApp: Sendable, Codable {
  /// Unique in the emulator.
  let number: UInt32
  let clientID: String
  var clientSecret: String
}

/// What Amazon knows of apps and access tokens.
struct ADMAccounts: Sendable {
  private(set) var apps: [UInt32: ADMApp] = [:]
  private var clients: [String: UInt32] = [:]
  var tokens = AccessTokens()
  var rates = RateTable<UInt32>()

  func app(client: String) -> ADMApp? { clients[client].flatMap { apps[$0] } }

  /// Takes an app up, also in the place of what it was before.
  mutating func add(_ app: ADMApp) {
    apps[app.number] = app
    clients[app.clientID] = app.number
  }

  mutating func remove(app number: UInt32) {
    guard let app = apps.removeValue(forKey: number) else { return }
    clients[app.clientID] = nil
    tokens.revoke(app: number)
  }
}
