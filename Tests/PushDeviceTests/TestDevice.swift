import Foundation
import NotificationHubs
import PushDevice
import PushDeviceTesting

/// A device with its storage, over several launches of its app.
struct TestDevice {
  let storage = FakeStorage()
  let hub: FakeRegistrar
  let system = FakeSystem()
  let clock = ManualDeviceClock()
  var configuration = PushInstallation.Configuration()
  /// Keeps processes alive whose test has no further use for them: their timers go on.
  private let processes = Locked<[PushInstallation]>([])

  init(hub: FakeRegistrar = FakeRegistrar()) { self.hub = hub }

  /// A process: the app, or an extension beside it.
  func process(
    jitter: Double = 1, enrich: PushInstallation.Enrichment? = nil
  ) -> PushInstallation {
    let process = PushInstallation(
      registrar: hub, storage: storage, system: system, clock: clock, configuration: configuration,
      jitter: { jitter }, enrich: enrich)
    processes.withLock { $0.append(process) }
    return process
  }

  /// A launch that gets a token and registers. Nothing of an earlier one is left but the storage.
  func launch(token: UInt8 = 1) async -> PushInstallation {
    clock.endProcess()
    let push = process()
    await push.start()
    await push.didRegister(deviceToken: .token(token))
    await push.settled()
    await clock.advance(by: .seconds(5))
    return push
  }

  var saves: [Installation] {
    hub.requests.compactMap { if case .save(let installation) = $0 { installation } else { nil } }
  }

  /// The only installation at the hub; `nil` if there is none or several.
  var registered: Installation? {
    hub.installations.count == 1 ? hub.installations.first?.value : nil
  }
}

extension Data {
  /// A device token of 32 equal bytes.
  static func token(_ byte: UInt8) -> Data { Data(repeating: byte, count: 32) }
}

extension Installation {
  var tagNames: Set<String> { Set(tags.map(\.rawValue)) }
}

extension PushInstallation.State {
  /// The confirmation; `nil` if the device is not registered.
  var receipt: SaveReceipt? { if case .saved(let receipt) = self { receipt } else { nil } }
  var isSaved: Bool { receipt != nil }
  /// The failure; `nil` if there is none.
  var error: RegistrarError? { if case .failed(let error, _) = self { error } else { nil } }
}
