/// Everything the emulator knows, without any input or output: what comes in is a call, what must
/// happen outside is its result. One lock guards it (`EmulatorCore`).
struct EmulatorState: Sendable {
  /// What can be set when the emulator starts.
  struct Settings: Sendable {
    var seed: UInt64 = 1
    var apns = APNsOptions()
    var fcm = FCMOptions()
    var webPush = WebPushOptions()
    var wns = WNSOptions()
    var others = OtherServicesOptions()
    var limits = DeviceTable.Limits()
    /// Requests kept; 0 switches the journal off.
    var journalCapacity = 100_000
  }

  let settings: Settings
  var clock: EmulatorClock
  var generator: SeededGenerator
  var apns = APNsAccounts()
  var channels = APNsChannels()
  var fcm = FCMAccounts()
  var webPush = WebPushAccounts()
  var wns = WNSAccounts()
  var adm = ADMAccounts()
  var baidu = BaiduAccounts()
  var xiaomi = XiaomiAccounts()
  /// Which service each app is of, by the app's number.
  var apps: [UInt32: PushService] = [:]
  var handles = HandleTable()
  /// Base URLs of the listeners, once they listen.
  var origins = ServiceOrigins()
  var devices: DeviceTable
  var connections = ConnectionTable()
  var faults = FaultBook()
  /// The faults as they were asked for, by id.
  var faultRequests: [(id: String, json: JSON)] = []
  var journal: Journal
  var statistics = Statistics()
  var lastApp: UInt32 = 0
  var lastRequest = 0
  /// Streams are told apart by number, also over a reset.
  private var lastReader = 0
  /// Grows with each change of apps and devices: the state file follows it.
  var revision = 0

  init(settings: Settings, clock: EmulatorClock = EmulatorClock()) {
    self.settings = settings
    self.clock = clock
    generator = SeededGenerator(seed: settings.seed)
    devices = DeviceTable(limits: settings.limits)
    journal = Journal(capacity: settings.journalCapacity)
  }

  /// Drops apps, devices, channels, history, faults and journal, and begins ids again. Open connections and
  /// the clock stay; streams end.
  ///
  /// - Parameter keepApps: Keeps apps and keys, and goes on with the ids where they stand.
  mutating func reset(keepApps: Bool) {
    for app in apps.keys { devices.removeFeed(of: app) }
    devices.endReaders()
    devices = DeviceTable(limits: settings.limits)
    faults = FaultBook()
    faultRequests = []
    journal.removeAll()
    statistics = Statistics()
    lastRequest = 0
    handles.forgetAll()
    channels.removeAll()
    if keepApps {
      apns.forgetTokens()
      fcm.forgetDevices()
      webPush.forgetDevices()
      wns.forgetDevices()
    } else {
      apns.forgetAll()
      fcm = FCMAccounts()
      webPush = WebPushAccounts()
      wns = WNSAccounts()
      adm = ADMAccounts()
      baidu = BaiduAccounts()
      xiaomi = XiaomiAccounts()
      apps = [:]
      lastApp = 0
      generator = SeededGenerator(seed: settings.seed)
    }
    revision += 1
  }

  mutating func newReader(_ wake: @escaping @Sendable () -> Void) -> EventReader {
    lastReader += 1
    return EventReader(id: lastReader, wake: wake)
  }

  /// Does what is due by the clock: expirations, and pushes that waited long enough.
  mutating func settleDue() {
    let now = clock.now
    while let device = devices.takeDue(at: now) { settle(device, now: now) }
  }

  /// A connection that must go.
  struct IdleConnection: Sendable {
    let slot: Int
    let lastStream: Int32
  }

  /// Connections that had no request for too long and were not told yet.
  mutating func takeIdle() -> [IdleConnection] {
    let limit = clock.now - settings.apns.idleTimeout * 1000
    var idle: [IdleConnection] = []
    for slot in connections.slots.indices {
      guard let connection = connections[slot], connection.apns != nil, !connection.isIdle,
        connection.lastActivity < limit
      else { continue }
      connections[slot]?.isIdle = true
      idle.append(.init(slot: slot, lastStream: connection.highestStream))
    }
    return idle
  }
}
