pytest_plugins = ["belfry_emulator"]
