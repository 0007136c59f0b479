import Foundation
import NotificationHubs
import Synchronization

/// The gateway of a lane, or the reason why there is none.
enum GatewayRoute: Sendable {
  /// - Parameter credential: When the credential was last changed; a new one ends a lane's rest.
  case open(any PushGateway, credential: Date)
  /// There is none; every target has this outcome.
  case refused(NotificationOutcome, reason: String)
}

/// Finds each lane's gateway, and remembers it until the store says that hubs or credentials may
/// have changed.
final class GatewayRoutes: Sendable {
  private struct State {
    var version: Int?
    var credentials: [Hub.ID: [PushPlatform: PushCredential]] = [:]
    var routes: [LaneKey: GatewayRoute] = [:]
  }

  private let store: any CredentialStore
  private let gateways: any GatewayDirectory
  private let migratesGCM: Bool
  private let state = Mutex(State())

  /// - Parameter migratesGCM: Devices of GCM are reached through the hub's FCM v1 credential.
  init(store: any CredentialStore, gateways: any GatewayDirectory, migratesGCM: Bool) {
    self.store = store
    self.gateways = gateways
    self.migratesGCM = migratesGCM
  }

  /// Forgets the gateways when they may have changed; to be called once a page, and each second while
  /// notifications wait behind a refused credential.
  /// - Throws: The store's errors.
  func refresh() async throws {
    let version = try await store.directoryVersion()
    state.withLock { if $0.version != version { $0 = State(version: version) } }
  }

  /// - Throws: The store's errors; a credential that cannot work is a refusal.
  func route(_ lane: LaneKey) async throws -> GatewayRoute {
    let (version, known) = state.withLock { ($0.version, $0.routes[lane]) }
    if let known { return known }
    let route = try await find(lane, version: version)
    state.withLock { if $0.version == version { $0.routes[lane] = route } }
    return route
  }

  private func find(_ lane: LaneKey, version: Int?) async throws -> GatewayRoute {
    let name = lane.platform.rawValue
    let credentials = try await credentials(lane.hub, version: version)
    let isMigrated = migratesGCM && lane.platform == .gcm && credentials[.fcmv1] != nil
    guard let credential = credentials[isMigrated ? .fcmv1 : lane.platform] else {
      // For a service that has ended no credential could help.
      if lane.platform.traits.successor != nil {
        return .refused(.pnsInterfaceError, reason: "retired service")
      }
      return .refused(.invalidCredentials, reason: "the hub has no \(name) credential")
    }
    do {
      guard let gateway = try await gateways.gateway(for: credential, hub: lane.hub) else {
        return .refused(.pnsInterfaceError, reason: "this build has no gateway for \(name)")
      }
      return .open(
        isMigrated ? gateways.legacy(gateway) : gateway, credential: credential.modifiedAt)
    } catch let error as CredentialError {
      return .refused(.invalidCredentials, reason: error.description)
    } catch {
      return .refused(.invalidCredentials, reason: "the \(name) credential cannot be used")
    }
  }

  private func credentials(
    _ hub: Hub.ID, version: Int?
  ) async throws -> [PushPlatform: PushCredential] {
    if let known = state.withLock({ $0.credentials[hub] }) { return known }
    let found = Dictionary(
      try await store.credentials(hub: hub).map { ($0.platform, $0) },
      uniquingKeysWith: { $1 })
    state.withLock { if $0.version == version { $0.credentials[hub] = found } }
    return found
  }
}
