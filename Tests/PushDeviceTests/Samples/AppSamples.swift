// The samples of docs/device.md and of PushDevice.docc for Apple's systems: script/check-example compiles them,
// DocumentationTests compares.

#if canImport(UIKit)
  import Foundation
  import NotificationHubs
  import PushDevice
  import PushDeviceSecure
  import SwiftUI
  import UIKit
  import UserNotifications

  let url = URL(filePath: "/")
  let storage = AppGroupStorage(group: "group.com.example.news")

  @MainActor struct Registering {
    func run(password: String) async throws {
      let storage = AppGroupStorage(group: "group.com.example.news")
      let account = BackendAccount(backend: url, storage: storage)
      let push = PushInstallation(
        registrar: account.registrar, storage: storage, system: UserNotificationSystem(),
        enrich: account.enrichment)
      await account.start(push)  // at every launch
      try await account.signIn(user: "alice", password: password, on: push)
      _ = try await push.requestPermission()  // when the app has explained why
    }

    func runForTrials(connection: ConnectionString) async throws {
      let push = PushInstallation(
        registrar: HubRegistrar(connectionString: connection, hub: "news"),
        storage: AppGroupStorage(group: "group.com.example.news"), system: UserNotificationSystem())
      await push.start()  // at every launch
      try await push.insert("sport")
    }
  }

  struct News {
    let push: PushInstallation
    let account = BackendAccount(backend: url, storage: storage)
    init() {
      push = PushInstallation(
        registrar: account.registrar, storage: storage, system: UserNotificationSystem(),
        enrich: account.enrichment)
    }
  }

  final class AppDelegate: PushAppDelegate {
    let news = News()  // holds `push` and `account` of the sample above
    override var push: PushInstallation? { news.push }
    override func start() async { await news.account.start(news.push) }
  }

  @main struct NewsApp: App {
    @UIApplicationDelegateAdaptor(AppDelegate.self) private var delegate
    @State private var title = "Nothing yet"

    var body: some Scene {
      WindowGroup {
        Text(title).onPushEvent(of: delegate.events) { event in
          if case .opened(let message) = event { title = message.text.title ?? "" }
        }
      }
    }
  }

  final class NotificationService: PushServiceExtension {
    override var work: ServiceExtensionWork {
      ServiceExtensionWork(
        opener: BackendAccount(backend: url, storage: storage).messages, storage: storage)
    }
  }
#endif
