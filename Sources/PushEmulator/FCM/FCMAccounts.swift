import Cryptography

/// What Google knows of projects, service accounts and access tokens.
struct FCMAccounts: Sendable {
  private(set) var apps: [UInt32: FCMApp] = [:]
  private var projects: [String: UInt32] = [:]
  /// By client email, with the key ready for use.
  private var keys: [String: [Key]] = [:]
  private var tokens: [String: AccessToken] = [:]
  /// By device; those that were sent to while a limit was on.
  private var deviceRates: [Int: DeviceRate] = [:]
  private var projectRates: [UInt32: TokenBucket] = [:]

  struct Key: Sendable {
    let app: UInt32
    let account: FCMApp.Account
    let publicKey: RSAPublicKey
  }

  /// A token that was handed out.
  struct AccessToken: Sendable {
    let app: UInt32
    let clientEmail: String
    let scopes: [String]
    /// In ms since the Unix epoch.
    let expiresAt: Int64
  }

  private struct DeviceRate: Sendable {
    var minute = TokenBucket()
    var hour = TokenBucket()
    var collapsible = TokenBucket()
  }

  func app(project: String) -> FCMApp? { projects[project].flatMap { apps[$0] } }

  /// Takes an app up, also in the place of what it was before.
  /// - Throws: When a key cannot be read; nothing has changed then.
  mutating func add(_ app: FCMApp) throws {
    var added: [Key] = []
    for account in app.accounts {
      added.append(
        Key(
          app: app.number, account: account,
          publicKey: try RSAPublicKey(pem: account.publicKeyPEM)))
    }
    forgetKeys(of: app.number)
    for key in added { keys[key.account.clientEmail, default: []].append(key) }
    apps[app.number] = app
    projects[app.projectID] = app.number
  }

  private mutating func forgetKeys(of app: UInt32) {
    keys = keys.mapValues { $0.filter { $0.app != app } }.filter { !$0.value.isEmpty }
  }

  mutating func remove(app number: UInt32) {
    guard let app = apps.removeValue(forKey: number) else { return }
    projects[app.projectID] = nil
    forgetKeys(of: number)
    revokeTokens(of: number)
  }

  mutating func forgetDevices() { deviceRates = [:] }

  // MARK: Tokens

  /// The keys of a client; all its keys without a key id.
  func keys(client: String, keyID: String?) -> [Key] {
    (keys[client] ?? []).filter { keyID == nil || $0.account.privateKeyID == keyID }
  }

  /// Most tokens remembered; the expired go first, then all.
  private static let tokenLimit = 100_000

  mutating func remember(_ text: String, _ token: AccessToken, now: Int64) {
    if tokens.count >= Self.tokenLimit {
      tokens = tokens.filter { $0.value.expiresAt > now }
      if tokens.count >= Self.tokenLimit { tokens = [:] }
    }
    tokens[text] = token
  }

  func token(_ text: String, now: Int64) -> AccessToken? {
    tokens[text].flatMap { $0.expiresAt > now ? $0 : nil }
  }

  mutating func revokeTokens(of app: UInt32) { tokens = tokens.filter { $0.value.app != app } }

  // MARK: Rates

  /// Whether the message is within the limits that are on (fcm-v1.md, section 5).
  mutating func isWithinRates(
    device: Int, app: UInt32, isCollapsible: Bool, options: FCMOptions, now: Int64
  ) -> Bool {
    if let rate = options.projectRate,
      !projectRates[app, default: TokenBucket()].take(
        rate: rate / 60, burst: max(1, rate), now: now)
    {
      return false
    }
    if options.perDeviceRate {
      var rates = deviceRates[device] ?? DeviceRate()
      let isWithin =
        rates.minute.take(rate: 4, burst: 240, now: now)
        && rates.hour.take(rate: 5000 / 3600, burst: 5000, now: now)
      deviceRates[device] = rates
      if !isWithin { return false }
    }
    if options.collapsibleRate, isCollapsible {
      return deviceRates[device, default: DeviceRate()].collapsible.take(
        rate: 1 / 180, burst: 20, now: now)
    }
    return true
  }
}
