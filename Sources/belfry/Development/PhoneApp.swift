import Foundation
import NotificationHubs
import PushDevice
import Synchronization

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
      configuration: configuration, enrich: enrichment,
      newID: { circumstances.installationID ?? UUID().uuidString.lowercased() })
  }

  /// The phone, with its latest handle.
  var device: VirtualPhone { phone.withLock { $0 } }

  /// Launches the app: the system issues the token, and the desired installation is stored.
  ///
  /// - Parameters:
  ///   - note: Is told how the phone found its storage.
  ///   - setUp: Stores the desired installation; called when the phone is unlocked.
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
    if let condition = await push.storageCondition, circumstances.state != nil {
      note("storage: \(condition)")
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
        for await state in push.states { note("registration: \(state)\(Self.wait(of: state))") }
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

extension PhoneApp {
  /// The wait before the next attempt, for a state that has one.
  private static func wait(of state: PushInstallation.State) -> String {
    guard case .failed(_, let retryAt?) = state else { return "" }
    return "; next attempt in \(max(0, Int(retryAt.timeIntervalSinceNow.rounded(.up)))) s"
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
