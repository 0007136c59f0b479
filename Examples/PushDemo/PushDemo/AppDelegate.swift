import NotificationHubs
import PushDemo
import UIKit
import UserNotifications

/// Adapts the system's callbacks to `DemoApp`, which does everything.
@main
final class AppDelegate: UIResponder, UIApplicationDelegate {
  /// Shown by ``SceneDelegate``; a background push starts the app without it.
  let screen = SignInViewController()
  private var app: DemoApp?
  private let notifications = NotificationDelegate()

  func application(
    _ application: UIApplication,
    didFinishLaunchingWithOptions launchOptions: [UIApplication.LaunchOptionsKey: Any]?
  ) -> Bool {
    do {
      let app = DemoApp(
        settings: try Self.settings(),
        installationID: UIDevice.current.identifierForVendor?.uuidString ?? UUID().uuidString,
        system: PhoneSystem(screen: screen), secrets: Keychain.shared)
      self.app = app
      notifications.app = app
      screen.app = app
      UNUserNotificationCenter.current().delegate = notifications
      Task { await app.didFinishLaunching() }
    } catch {
      screen.showAlert("\(error)")
    }
    return true
  }

  private static func settings() throws -> DemoSettings {
    guard let url = Bundle.main.url(forResource: "devsettings", withExtension: "plist") else {
      throw CocoaError(
        .fileNoSuchFile,
        userInfo: [
          NSLocalizedDescriptionKey: "devsettings.plist is missing; the README says what it holds"
        ])
    }
    return try DemoSettings(propertyList: Data(contentsOf: url))
  }

  func application(
    _ application: UIApplication, didRegisterForRemoteNotificationsWithDeviceToken deviceToken: Data
  ) {
    guard let app else { return }
    Task {
      do { try await app.didRegister(deviceToken: deviceToken) } catch {
        await app.didFailToInstall(error)
      }
    }
  }

  func application(
    _ application: UIApplication,
    didFailToRegisterForRemoteNotificationsWithError error: any Error
  ) {
    guard let app else { return }
    let reason = error.localizedDescription
    Task {
      await app.didFailToRegister(
        CocoaError(.featureUnsupported, userInfo: [NSLocalizedDescriptionKey: reason]))
    }
  }

  /// The phone was unlocked: before the first time since it started the keychain cannot be read.
  func applicationProtectedDataDidBecomeAvailable(_ application: UIApplication) {
    guard let app else { return }
    Task {
      do { try await app.secretsBecameReadable() } catch { await app.didFailToInstall(error) }
    }
  }

  /// A background push: at most some thirty seconds to fetch the payload and show it.
  func application(
    _ application: UIApplication, didReceiveRemoteNotification userInfo: [AnyHashable: Any]
  ) async -> UIBackgroundFetchResult {
    guard let app, let payload = Payload.json(userInfo) else { return .noData }
    switch await app.didReceiveInBackground(payload) {
    case .newData: return .newData
    case .noData: return .noData
    case .failed: return .failed
    }
  }
}
