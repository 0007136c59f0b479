/// An app as Xiaomi knows it; kept in the state file.
struct XiaomiApp: Sendable, Codable {
  /// Unique in the emulator.
  let number: UInt32
  let packageName: String
  var appSecret: String
}

/// What Xiaomi knows of apps.
struct XiaomiAccounts: Sendable {
  private(set) var apps: [UInt32: XiaomiApp] = [:]
  private var secrets: [String: UInt32] = [:]
  var rates = RateTable<UInt32>()
  private var sent: [UInt32: (day: Int64, count: Int)] = [:]

  func app(secret: String) -> XiaomiApp? { secrets[secret].flatMap { apps[$0] } }

  /// Takes an app up, also in the place of what it was before.
  mutating func add(_ app: XiaomiApp) {
    if let old = apps[app.number] { secrets[old.appSecret] = nil }
    apps[app.number] = app
    secrets[app.appSecret] = app.number
  }

  mutating func remove(app number: UInt32) {
    guard let app = apps.removeValue(forKey: number) else { return }
    secrets[app.appSecret] = nil
    sent[number] = nil
  }

  /// Counts messages, unless the day's quota would be exceeded; a day begins at midnight in China.
  /// - Parameter quota: `nil` for none.
  mutating func count(_ messages: Int, app: UInt32, quota: Int?, now: Int64) -> Bool {
    guard let quota else { return true }
    let day = (now / 1000 + 8 * 3600) / 86_400
    let before = sent[app].map { $0.day == day ? $0.count : 0 } ?? 0
    guard before + messages <= quota else { return false }
    sent[app] = (day, before + messages)
    return true
  }
}
