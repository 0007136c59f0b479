#if canImport(UserNotifications) && !os(watchOS) && !os(tvOS)
  import Foundation
  import UserNotifications

  #if canImport(UIKit)
    import UIKit
  #else
    import AppKit
  #endif

  /// The system of an app: permissions of the notification center, and tokens of APNs.
  @available(iOSApplicationExtension, unavailable)
  public struct UserNotificationSystem: PushSystem {
    /// Creates the system of this app.
    public init() {}

    public func registerForRemoteNotifications() async {
      #if canImport(UIKit)
        await MainActor.run { UIApplication.shared.registerForRemoteNotifications() }
      #else
        await MainActor.run { NSApplication.shared.registerForRemoteNotifications() }
      #endif
    }

    public func permission() async -> PushPermission {
      let settings = await UNUserNotificationCenter.current().notificationSettings()
      return switch settings.authorizationStatus {
      case .notDetermined: .undetermined
      case .denied: .denied
      case .provisional: .provisional
      default: .authorized
      }
    }

    public func requestPermission(_ options: PermissionOptions) async throws -> PushPermission {
      var wanted: UNAuthorizationOptions = []
      if options.contains(.alert) { wanted.insert(.alert) }
      if options.contains(.sound) { wanted.insert(.sound) }
      if options.contains(.badge) { wanted.insert(.badge) }
      if options.contains(.provisional) { wanted.insert(.provisional) }
      _ = try await UNUserNotificationCenter.current().requestAuthorization(options: wanted)
      return await permission()
    }

    public var facts: DeviceFacts {
      let info = Bundle.main.infoDictionary ?? [:]
      let version = info["CFBundleShortVersionString"] as? String ?? ""
      let build = info["CFBundleVersion"] as? String ?? ""
      // `operatingSystemVersionString` changes with the language.
      let system = ProcessInfo.processInfo.operatingSystemVersion
      return DeviceFacts(
        appVersion: "\(version) (\(build))",
        systemVersion: "\(system.majorVersion).\(system.minorVersion).\(system.patchVersion)")
    }
  }
#endif
