/// What Apple's accounts hold: apps, keys, and which device has which token.
struct APNsAccounts: Sendable {
  private(set) var apps: [UInt32: APNsApp] = [:]
  private(set) var keys: [String: APNsKey] = [:]
  /// Team, then bundle id, to the app's number.
  private var teams: [String: [String: UInt32]] = [:]
  /// Grows with every change of apps and keys: what a connection remembers of them is then void.
  private(set) var epoch = 0
  /// Token to device index, one table for each environment; former tokens stay.
  private var production: [APNsToken: Int32] = [:]
  private var sandbox: [APNsToken: Int32] = [:]

  func app(team: String, bundleID: String) -> APNsApp? {
    teams[team]?[bundleID].flatMap { apps[$0] }
  }

  func hasApp(team: String, bundleID: ArraySlice<UInt8>) -> Bool {
    app(team: team, bundleID: String(decoding: bundleID, as: UTF8.self)) != nil
  }

  /// - Precondition: The team has no other app of this bundle id.
  mutating func add(_ app: APNsApp) {
    apps[app.number] = app
    teams[app.teamID, default: [:]][app.bundleID] = app.number
    epoch += 1
  }

  mutating func add(_ key: APNsKey) {
    keys[key.kid] = key
    epoch += 1
  }

  mutating func update(key kid: String, _ change: (inout APNsKey) -> Void) {
    guard var key = keys[kid] else { return }
    change(&key)
    add(key)
  }

  mutating func setCertificates(_ certificates: [String], of number: UInt32) {
    apps[number]?.certificates = certificates
    epoch += 1
  }

  mutating func setBroadcasts(_ hasBroadcasts: Bool, of number: UInt32) {
    apps[number]?.hasBroadcasts = hasBroadcasts
  }

  /// Removes an app with its keys.
  mutating func remove(app number: UInt32) {
    guard let app = apps.removeValue(forKey: number) else { return }
    teams[app.teamID]?[app.bundleID] = nil
    keys = keys.filter { $0.value.app != number }
    epoch += 1
  }

  mutating func forgetTokens() { (production, sandbox) = ([:], [:]) }

  /// Everything goes; only the epoch does not begin again.
  mutating func forgetAll() {
    let epoch = epoch
    self = APNsAccounts()
    self.epoch = epoch + 1
  }

  // MARK: Tokens

  func device(_ token: APNsToken, in environment: APNsEnvironment) -> Int? {
    switch environment {
    case .production: production[token].map(Int.init)
    case .sandbox: sandbox[token].map(Int.init)
    }
  }

  mutating func reserve(_ more: Int, in environment: APNsEnvironment) {
    switch environment {
    case .production: production.reserveCapacity(production.count + more)
    case .sandbox: sandbox.reserveCapacity(sandbox.count + more)
    }
  }

  mutating func set(_ handle: APNsHandle, device: Int) {
    switch handle.environment {
    case .production: production[handle.token] = Int32(device)
    case .sandbox: sandbox[handle.token] = Int32(device)
    }
  }

  mutating func forget(_ handle: APNsHandle) {
    switch handle.environment {
    case .production: production[handle.token] = nil
    case .sandbox: sandbox[handle.token] = nil
    }
  }
}
