/// An app as Baidu knows it; kept in the state file.
struct BaiduApp: Sendable, Codable {
  /// Unique in the emulator.
  let number: UInt32
  let apiKey: String
  var secretKey: String
}

/// What Baidu knows of apps.
struct BaiduAccounts: Sendable {
  private(set) var apps: [UInt32: BaiduApp] = [:]
  private var keys: [String: UInt32] = [:]
  var rates = RateTable<UInt32>()

  func app(key: String) -> BaiduApp? { keys[key].flatMap { apps[$0] } }

  /// Takes an app up, also in the place of what it was before.
  mutating func add(_ app: BaiduApp) {
    apps[app.number] = app
    keys[app.apiKey] = app.number
  }

  mutating func remove(app number: UInt32) {
    guard let app = apps.removeValue(forKey: number) else { return }
    keys[app.apiKey] = nil
  }
}
