import Foundation
import NotificationHubs
import PushDevice
import Synchronization

/// The circumstances in which a virtual phone runs its app.
struct PhoneCircumstances: Sendable {
  /// The directory with the app's state; `nil` for a new phone.
  var state: URL?
  /// The installation id of a new phone; `nil` for one of its own.
  var installationID: String?
  /// Whether the app was deleted and installed again.
  var isReinstalled = false
  /// The state of another phone whose backup this one was restored from.
  var backup: URL?
  /// The seconds until the phone is unlocked for the first time.
  var lockedFor: Int?
  /// The seconds until the phone has a network.
  var offlineFor: Int?
  /// The seconds after which it gets another token, again and again.
  var rotationInterval: Int?
  /// The user's permission, which is sent as a tag then.
  var permission: PushPermission?
}

/// The app on a virtual phone: the device SDK with a terminal in place of iOS.
///
/// The app of the tutorials and this one differ in the adaptors only.
final class PhoneApp: Sendable {
  let push: PushInstallation
  let storage: PhoneStorage
  private let phone: Mutex<VirtualPhone>
  private let network: PhoneNetwork
  private let circumstances: PhoneCircumstances

  /// - Parameter network: The network of the registrar.
  init(
    phone: VirtualPhone, storage: PhoneStorage, circumstances: PhoneCircumstances,
    network: PhoneNetwork, registrar: any InstallationRegistrar,
    enrichment: PushInstallation.Enrichment? = nil
  ) {
    self.phone = Mutex(phone)
    self.storage = storage
    self.circumstances = circumstances
    self.network = network
    var configuration = PushInstallation.Configuration()
    configuration.platform = phone.platform
    configuration.tagsPermission = circumstances.permission != nil
    push = PushInstallation(
      registrar: registrar, storage: storage,
      system: PhoneSystem(permissionOfUser: circumstances.permission ?? .authorized),
      configuration: configuration, enrich: enrichment)
  }

  /// The phone, with its latest handle.
  var device: VirtualPhone { phone.withLock { $0 } }

  /// Launches the app: the system issues the token, and what the app wants is stored.
  ///
  /// - Parameters:
  ///   - note: Is told how the phone found its storage.
  ///   - setUp: The app's wishes; called when the phone is unlocked.
  func launch(
    note: @escaping @Sendable (String) -> Void, setUp: (PushInstallation) async throws -> Void
  ) async throws {
    await push.didRegister(device.channel)
    if let seconds = circumstances.lockedFor {
      try await Task.sleep(for: .seconds(seconds))
      storage.unlock()
      await push.protectedDataDidBecomeAvailable()
    }
    await push.start()
    if circumstances.permission == .denied {
      try await device.control.setDisabled(true, device.device.deviceId)
    }
    if let beginning = await push.beginning, circumstances.state != nil {
      note("storage: \(beginning)")
    }
    try await setUp(push)
    await push.willLeaveForeground()
  }

  /// Returns when the hub has the installation.
  ///
  /// - Throws: ``RegistrarError`` if it cannot have it; while the phone has no network, that is
  ///   waited for.
  func registered() async throws {
    for await state in push.states {
      switch state {
      case .saved: return
      case .failed(let error, let retryAt):
        if error.kind == .unreachable, network.isOffline, retryAt != nil { continue }
        throw error
      case .storageFailed(let reason): throw CommandFailure(reason)
      default: continue
      }
    }
  }

  /// Lets the phone's circumstances take their course, and tells each state, until cancelled.
  func live(note: @escaping @Sendable (String) -> Void) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [push] in
        for await state in push.states { note("registration: \(state.line)") }
      }
      if let seconds = circumstances.offlineFor {
        group.addTask { [push, network] in
          try await Task.sleep(for: .seconds(seconds))
          network.comeBack()
          note("the phone has a network")
          await push.didEnterForeground()
        }
      }
      if let seconds = circumstances.rotationInterval {
        group.addTask { [self] in
          while true {
            try await Task.sleep(for: .seconds(seconds))
            let rotated = try await device.rotated()
            phone.withLock { $0 = rotated }
            note("another handle: \(rotated.token)")
            await push.didRegister(rotated.channel)
          }
        }
      }
      try await group.waitForAll()
    }
  }
}

/// The storage of a virtual phone: a directory, or memory for a phone that is thrown away.
final class PhoneStorage: DeviceStorage {
  /// The id of the emulator's device that the phone is.
  static let device = StoredItem("emulated-device", isSecret: false)

  private struct Contents {
    var items: [StoredItem: Data] = [:]
    var isLocked: Bool
  }

  private let files: FileStorage?
  private let contents: Mutex<Contents>

  /// - Throws: ``StorageError``; ``CommandFailure`` if the state is of another installation.
  init(_ circumstances: PhoneCircumstances) throws {
    files = circumstances.state.map { FileStorage(directory: $0) }
    contents = Mutex(Contents(isLocked: false))
    if circumstances.isReinstalled { try save(nil, as: .record) }
    // Secrets are in no backup.
    if let backup = circumstances.backup {
      try save(try FileStorage(directory: backup).load(.record), as: .record)
    }
    if let id = circumstances.installationID {
      let stored = try load(.installationID).map { String(decoding: $0, as: UTF8.self) }
      guard stored == nil || stored == id else {
        throw CommandFailure("--id: the state is of the installation '\(stored ?? "")'")
      }
      try save(Data(id.utf8), as: .installationID)
    }
    contents.withLock { $0.isLocked = circumstances.lockedFor != nil }
  }

  func unlock() { contents.withLock { $0.isLocked = false } }

  func load(_ item: StoredItem) throws(StorageError) -> Data? {
    let (isLocked, data) = contents.withLock { ($0.isLocked, $0.items[item]) }
    if isLocked { throw .locked }
    return if let files { try files.load(item) } else { data }
  }

  func update(
    _ item: StoredItem, _ change: (inout Data?) -> Void
  ) throws(StorageError) {
    let isLocked = contents.withLock { contents in
      if !contents.isLocked, files == nil { change(&contents.items[item]) }
      return contents.isLocked
    }
    if isLocked { throw .locked }
    try files?.update(item, change)
  }
}

/// The network of a virtual phone.
final class PhoneNetwork: HTTPTransport {
  private let transport: any HTTPTransport
  private let offline: Mutex<Bool>

  init(_ transport: any HTTPTransport, isOffline: Bool) {
    self.transport = transport
    offline = Mutex(isOffline)
  }

  var isOffline: Bool { offline.withLock { $0 } }
  func comeBack() { offline.withLock { $0 = false } }

  func send(_ request: TransportRequest) async throws -> TransportReply {
    if isOffline { throw URLError(.notConnectedToInternet) }
    return try await transport.send(request)
  }
}

/// The system of a virtual phone. The emulator has issued the token before the app asks.
private struct PhoneSystem: PushSystem {
  let permissionOfUser: PushPermission

  var facts: DeviceFacts {
    DeviceFacts(appVersion: BelfryVersion.current, systemVersion: "virtual")
  }
  func registerForRemoteNotifications() async {}
  func permission() async -> PushPermission { permissionOfUser }
  func requestPermission(_ options: PermissionOptions) async throws -> PushPermission {
    permissionOfUser
  }
}

extension PushInstallation.State {
  /// The state in a line.
  var line: String {
    switch self {
    case .locked: "waits until the phone is unlocked"
    case .storageFailed(let reason): "the storage failed: \(reason)"
    case .waitingForToken(let problem): "waits for a token\(problem.map { ": \($0)" } ?? "")"
    case .waitingForSignIn: "waits until somebody signs in"
    case .pending: "pending"
    case .saving: "saving"
    case .saved(let receipt): "saved, fingerprint \(receipt.fingerprint)"
    case .failed(let error, let retryAt):
      "failed, \(error.kind)"
        + (retryAt.map {
          ", next attempt in \(max(0, Int($0.timeIntervalSinceNow.rounded(.up)))) s"
        }
          ?? ", next attempt at the next launch, foreground or change")
    case .disabled: "off"
    }
  }
}
