import PushDevice
import SwiftUI

@main
struct PushDemoApp: App {
  @UIApplicationDelegateAdaptor(AppDelegate.self) private var delegate

  var body: some Scene {
    WindowGroup { ContentView(demo: delegate.demo, events: delegate.events) }
  }
}
