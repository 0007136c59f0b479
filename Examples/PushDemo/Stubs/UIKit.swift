// The declarations that the device SDK and the example use of UIKit, as in the iOS SDK, so that their Swift
// can be type-checked on systems without that SDK. Nothing here does anything.

@_exported import Foundation

@MainActor open class UIResponder: NSObject {
  public override init() { super.init() }
}

@MainActor public protocol UIApplicationDelegate: NSObjectProtocol {
  func application(
    _ application: UIApplication,
    didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]?
  ) -> Bool
  func application(
    _ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data
  )
  func application(
    _ application: UIApplication,
    didFailToRegisterForRemoteNotificationsWithError error: any Error)
  func application(
    _ application: UIApplication, didReceiveRemoteNotification userInfo: [AnyHashable: Any]
  ) async -> UIBackgroundFetchResult
  func applicationProtectedDataDidBecomeAvailable(_ application: UIApplication)
}

public enum UIBackgroundFetchResult: UInt, Sendable {
  case newData
  case noData
  case failed
}

public struct UIBackgroundTaskIdentifier: RawRepresentable, Hashable, Sendable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }
  public static let invalid = UIBackgroundTaskIdentifier(rawValue: 0)
}

@MainActor open class UIApplication: UIResponder {
  public struct LaunchOptionsKey: Hashable, Sendable {}
  open class var shared: UIApplication { UIApplication() }
  open func registerForRemoteNotifications() {}
  open func beginBackgroundTask(
    withName taskName: String?, expirationHandler handler: (@MainActor @Sendable () -> Void)? = nil
  ) -> UIBackgroundTaskIdentifier { UIBackgroundTaskIdentifier(rawValue: 0) }
  open func endBackgroundTask(_ identifier: UIBackgroundTaskIdentifier) {}
  public nonisolated class var willEnterForegroundNotification: Notification.Name {
    Notification.Name("willEnterForeground")
  }
  public nonisolated class var didEnterBackgroundNotification: Notification.Name {
    Notification.Name("didEnterBackground")
  }
}
